package cli

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/plugins/http"
)

// allowNetFlag adds --allow-net, of a command that runs tasks. The plugin learns of it as the flag is
// read, before any task runs.
func (a *app) allowNetFlag(cmd *cobra.Command) *networks {
	n := &networks{app: a}
	cmd.Flags().Var(n, "allow-net", "a private address or `CIDR` that the plugin http may reach, as in 10.1.0.0/16; may be repeated")
	return n
}

// networks are the private addresses that requests may go to.
type networks struct {
	app *app
	all []netip.Prefix
}

// Set implements pflag.Value.
func (n *networks) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		p, err := netip.ParsePrefix(word)
		if a, ofOne := netip.ParseAddr(word); ofOne == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || p.Addr().Is4In6() {
			return fmt.Errorf("%q is no address and no network, as in 10.1.0.0/16 or fd00::/8", word)
		}
		n.all = append(n.all, p.Masked())
	}
	n.app.networks = n.all // commands that it prints repeat them
	if p := n.app.Requests; p != nil {
		p.Allow(n.all...)
	}
	return nil
}

// String implements pflag.Value.
func (n *networks) String() string {
	words := make([]string, len(n.all))
	for i, p := range n.all {
		words[i] = p.String()
	}
	return strings.Join(words, ",")
}

// Type implements pflag.Value.
func (*networks) Type() string { return "CIDR" }

// receiver returns what says why nodes could hand over nothing to an address.
func (a *app) receiver() func(uri string) error {
	if a.Requests == nil {
		return http.CheckReceiver
	}
	return a.Requests.CheckReceiver
}
