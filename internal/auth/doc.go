// Package auth owns access control over HTTP. It has the access file (users, tokens, a trusted
// proxy), the scopes of requests and callers, and the guard before every handler (Host, origin,
// identity, scope, audit). It also has sessions and their login, and the rules by which a server
// may listen at all. It knows no route: the server names the scope of each request.
package auth
