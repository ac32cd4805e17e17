// Package auth says who may do what over HTTP. It owns the access file (users, tokens, a trusted proxy), the scopes that a request needs and
// a caller has, the guard that stands before every handler (Host, origin, identity, scope, audit), sessions and their login, and the rules by
// which a server may listen at all. It knows no route: the server says which scope each of its requests needs.
package auth
