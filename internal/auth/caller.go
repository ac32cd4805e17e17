package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// A caller is where a request comes from.
type caller struct {
	peer   netip.Addr // who is connected; invalid over a Unix socket
	unix   bool
	proxy  bool       // it is the proxy that is believed
	client netip.Addr // whom it calls for, as far as that is known; invalid over a Unix socket
}

// from returns where a request comes from.
func from(r *http.Request, p *Proxy) caller {
	c := caller{peer: address(r.RemoteAddr)}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		c = caller{unix: true}
	}
	c.proxy = p.trusts(c)
	c.client = c.peer
	if c.proxy && p.ClientHeader != "" {
		// The proxy appends the address that it sees. Anybody may have written the text before it.
		all := strings.Split(strings.Join(r.Header.Values(p.ClientHeader), ","), ",")
		if told := address(strings.TrimSpace(all[len(all)-1])); told.IsValid() {
			c.client = told
		}
	}
	return c
}

// network returns what counts as one address for the limits: of IPv6 a network of 64 bits, which is what one machine has.
func (c caller) network() netip.Prefix {
	bits := c.client.BitLen()
	if c.client.Is6() {
		bits = 64
	}
	prefix, _ := c.client.Prefix(bits) // zero over a Unix socket
	return prefix
}

func (c caller) String() string {
	switch {
	case c.client.IsValid():
		return c.client.String()
	case c.unix:
		return overUnix
	}
	return "?"
}

// local reports whether the caller is on this machine, and nobody stands between that is known of.
func (c caller) local() bool { return c.unix || c.peer.IsLoopback() }

// trusts reports whether a caller is the proxy.
func (p *Proxy) trusts(c caller) bool {
	if p == nil {
		return false
	}
	if c.unix {
		return p.unix
	}
	return slices.ContainsFunc(p.from, func(from netip.Prefix) bool { return from.Contains(c.peer) })
}

// roleOf returns the role of a user whom the proxy let in; "" if it has none.
func (p *Proxy) roleOf(name string) Role {
	if role, ok := p.Roles[name]; ok {
		return role
	}
	return p.Role
}
