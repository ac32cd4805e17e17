// Package layers holds the package map as a test: the imports that each package may have, and the
// package comment in which each says what it owns. A second test holds comments to plain sentences.
// The package has no code.
package layers
