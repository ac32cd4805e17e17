package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// A Setup is how a server is to be reached.
type Setup struct {
	Listen   string   // HOST:PORT, or unix:PATH
	Hosts    []string // other names that it is reached by
	TLS      bool     // it has a certificate
	Insecure bool     // it may do without one, where passwords and tokens go over a network
	Access   *Access  // who there is; nil: no file says it
}

// Terms are those under which a server may start.
type Terms struct {
	Notice  string // for its first line: who may do what
	Warning string // to be said loudly; "" if there is nothing
}

// unixPrefix begins an address that is a path.
const unixPrefix = "unix:"

// Check decides whether a server may start. Everybody who reaches the server and may submit can run
// commands. So callers from other machines must identify themselves, and must not do so
// unencrypted. The error tells the remedy.
func Check(s Setup) (Terms, error) {
	path, overSocket := strings.CutPrefix(s.Listen, unixPrefix)
	host, port, err := net.SplitHostPort(s.Listen)
	switch {
	case overSocket && path == "":
		return Terms{}, errors.New("--listen unix: has no path; write unix:/run/user/1000/sluice.sock, say")
	case !overSocket && err != nil:
		return Terms{}, fmt.Errorf("--listen %q is not an address; write HOST:PORT, such as 127.0.0.1:8080, or unix:PATH", s.Listen)
	case !overSocket && port == "":
		return Terms{}, fmt.Errorf("--listen %q has no port; 0 is any that is free", s.Listen)
	case s.Access != nil && s.Access.Empty():
		return Terms{}, errors.New("the access file has no user and no token; add a user (sluice access user add) or a token (sluice access token add)")
	}
	local := overSocket || isLoopback(host)
	if s.Access == nil {
		for _, name := range s.Hosts {
			if name = hostName(name); !isLoopback(name) {
				return Terms{}, fmt.Errorf("--host %s: any client that uses this name could run commands; restrict access with --access FILE", name)
			}
		}
	}
	switch {
	case local && s.Access == nil && overSocket:
		return Terms{Notice: "your account, and root, may submit, and so run commands: nobody is asked for a password"}, nil
	case local && s.Access == nil:
		return Terms{Notice: "all accounts on this machine may submit, and so run commands: nobody is asked for a password " +
			"(on a machine with others use --listen unix:PATH, or --access FILE)"}, nil
	case local:
		return Terms{Notice: who(s.Access)}, nil
	case s.Access == nil:
		return Terms{}, fmt.Errorf("--listen %s: other machines can reach it, and any of them could run commands; restrict access with "+
			"--access FILE (sluice access user add makes one), or listen on 127.0.0.1:%s or unix:PATH", s.Listen, port)
	case s.TLS:
		return Terms{Notice: who(s.Access)}, nil
	case s.Insecure:
		return Terms{Notice: who(s.Access), Warning: fmt.Sprintf("INSECURE: passwords, tokens and sessions travel unencrypted on %s; "+
			"a listener on the network can take them, and then run commands. Give it a certificate (--tls-cert, --tls-key)", s.Listen)}, nil
	}
	return Terms{}, fmt.Errorf("--listen %s: other machines can reach it, and passwords would travel unencrypted; give it a certificate "+
		"(--tls-cert FILE --tls-key FILE), listen on 127.0.0.1:%s behind a proxy that has one, or say --insecure", s.Listen, port)
}

// who describes the accounts of an access file.
func who(a *Access) string {
	var parts []string
	for _, of := range []struct {
		n         int
		one, many string
	}{{len(a.Users), "user", "users"}, {len(a.Tokens), "token", "tokens"}} {
		switch {
		case of.n == 1:
			parts = append(parts, "1 "+of.one)
		case of.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", of.n, of.many))
		}
	}
	if a.Proxy != nil && a.Proxy.Header != "" {
		parts = append(parts, "whom the proxy at "+strings.Join(a.Proxy.From, ", ")+" names in "+a.Proxy.Header)
	}
	return "let in are " + strings.Join(parts, ", ")
}

// isLoopback reports whether a host name can be reached only from its own machine. Among names,
// only localhost is known to be such (RFC 6761, 6.3).
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Listen opens a listener that Check accepted. A Unix socket belongs to its owner alone from the
// first instant. It replaces the socket of a dead server, and never that of a live one. Closing the
// listener removes the socket.
func Listen(ctx context.Context, listen string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(listen, unixPrefix); ok {
		return listenUnix(ctx, path)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another process listens on %s, perhaps another sluice serve: end it, or name another port", listen)
	}
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(listen) // it listens
	if at := address(l.Addr().String()); isLoopback(host) && !at.IsLoopback() {
		_ = l.Close()
		return nil, fmt.Errorf("--listen %s: here %s leads to %s, which is not this machine's alone; write 127.0.0.1", listen, host, at)
	}
	return l, nil
}

// address reads an address with or without a port; invalid if it is none.
func address(text string) netip.Addr {
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr().Unmap().WithZone("")
	}
	addr, _ := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr.Unmap().WithZone("")
}

// hostName returns the name in a Host header, without port, as names are compared; "" if there is none.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().WithZone("").String()
	}
	return host
}
