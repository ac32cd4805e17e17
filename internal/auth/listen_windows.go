package auth

import (
	"context"
	"errors"
	"net"
)

func listenUnix(context.Context, string) (net.Listener, error) {
	return nil, errors.New("--listen unix:PATH: on Windows a socket cannot be kept from others by its mode; use 127.0.0.1:PORT with --access FILE")
}
