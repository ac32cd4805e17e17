// Package layers holds the package map as a test: who may import whom, and that each package says what it owns. It has no code.
package layers
