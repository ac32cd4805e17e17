package v1

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/hint"
)

// A Place says where the commands in an answer are to be typed. Without it they would go to the
// store that is the reader's default.
type Place struct {
	Server string // as --server takes it
	Store  string // as --store takes it; AnyStore where that is not told
}

// AnyStore replaces the store of the server if its address may not be shown.
const AnyStore = "URI"

// PlaceOf returns the place for the caller of a request. A caller on this host sees the path of a
// SQLite file. Any other URI may hold a password, and a caller from elsewhere, or behind a proxy,
// has no use for a path.
func PlaceOf(r *http.Request, store string) Place {
	p := Place{Server: "http://" + r.Host, Store: AnyStore}
	switch local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); {
	case local != nil && local.Network() == "unix":
		p.Server = "unix:" + local.String()
	case r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https":
		p.Server = "https://" + r.Host
	}
	if strings.HasPrefix(store, "sqlite:") && own(r) {
		p.Store = store
	}
	return p
}

// own reports whether a request was sent on this host, as far as it tells.
func own(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	if strings.HasPrefix(r.RemoteAddr, "@") || r.RemoteAddr == "" { // of a socket
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	to, unnamed := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && from.Addr().Unmap().IsLoopback() && (host == "localhost" || unnamed == nil && to.IsLoopback())
}

// Command returns a command as it is typed there, or "" for no words. A command that runs a node
// needs the store itself.
func (p Place) Command(words []string) string {
	if len(words) == 0 {
		return ""
	}
	if hint.NeedsStore(words) {
		words = append(slices.Clone(words), "--store", p.Store)
	} else if p.Server != "" {
		words = append(slices.Clone(words), "--server", p.Server)
	}
	return hint.Line(words)
}

type placeKey struct{}

// placeOf returns the place for who sent the request that a context is of.
func placeOf(ctx context.Context) Place {
	p, _ := ctx.Value(placeKey{}).(Place)
	return p
}
