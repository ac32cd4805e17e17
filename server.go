package sluice

import (
	"net/http"

	"github.com/seed-1177d267/sluice/internal/client"
)

// ErrURL means that a text names no server.
var ErrURL = client.ErrURL

// ServerOptions say as whom a server is asked. The zero value is nobody, which suffices for a server
// that asks no questions.
type ServerOptions struct {
	Token          string       // of "sluice access"; or
	User, Password string       // of a user; default: those in the URL
	HTTP           *http.Client // default: a client of its own
}

// Connect returns the store behind a server that "sluice serve" runs, for programs that have no access
// to the database. The URL is https://HOST, http://HOST:PORT or unix:PATH. Nothing is asked of the
// server yet. Connect returns ErrURL for a text that names no server.
//
// An error of the server comes in its words. A server that cannot be reached is plan.ErrUnavailable,
// after a few tries. A server is no store for nodes: den.Run on it fails. The server ends a plan that
// Cancel cancels and that no node serves.
func Connect(url string, o ServerOptions) (*Store, error) {
	c, err := client.New(client.Config{URL: url, Token: o.Token, User: o.User, Password: o.Password, HTTP: o.HTTP})
	if err != nil {
		return nil, err
	}
	return &Store{node: c, driver: c, shown: c, far: true}, nil
}
