package wire

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/seed-1177d267/sluice/plan"
)

// Connect returns a client for the URI, and the database that it names. Nothing has gone over the network then, but for the names that
// mongodb+srv has looked up.
func Connect(uri string, m *event.CommandMonitor) (client *mongo.Client, database string, err error) {
	c := options.Client().ApplyURI(uri)
	if err := c.Validate(); err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) { // of mongodb+srv, whose hosts are looked up as it is read
			what, remedy := causeOf(err)
			err = &Unreachable{What: at(dns.Name + " (" + what + ")"), Remedy: remedy + ", or write mongodb:// for one that has no SRV record", Err: err}
			return nil, "", fmt.Errorf("open %s: %w", Redact(uri), err)
		}
		return nil, "", fmt.Errorf("%s is not the URI of a MongoDB database: %w", Redact(uri), Redacted(err))
	}
	database, err = Database(uri)
	if err != nil {
		return nil, "", fmt.Errorf("%s is not the URI of a MongoDB database: %w", Redact(uri), err)
	}
	if strings.ContainsAny(database, `/\. "$`) {
		return nil, "", fmt.Errorf("%s names the database %q; a name has none of / \\ . \" $ and blank; write mongodb://HOST:PORT/DATABASE", Redact(uri), database)
	}
	if database == "" {
		return nil, "", fmt.Errorf("%s names no database; write mongodb://HOST:PORT/DATABASE", Redact(uri))
	}
	journaled := true
	c.SetAppName("sluice").SetRegistry(types).SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Local()).
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journaled}).SetMonitor(m)
	if c.ServerSelectionTimeout == nil {
		c.SetServerSelectionTimeout(selectionTimeout)
	}
	client, err = mongo.Connect(c)
	if err != nil {
		return nil, "", fmt.Errorf("connect to %s: %w: %w", Redact(uri), plan.ErrUnavailable, Redacted(err))
	}
	return client, database, nil
}

// Database returns the database that a URI names, "" if it names none. Package net/url reads no URI of several hosts of which the last has
// no port, or another one is an IPv6 address.
func Database(uri string) (string, error) {
	_, rest, _ := strings.Cut(uri, "://")
	rest, _, _ = strings.Cut(rest, "?")
	hosts := strings.LastIndexByte(rest, '@') + 1
	for _, word := range strings.SplitN(rest[:max(hosts-1, 0)], ":", 2) {
		if _, err := url.PathUnescape(word); err != nil || strings.ContainsAny(word, "/@") {
			return "", errors.New("letters such as @ and / in a user's name or password are written as %40 and %2F") // without the word
		}
	}
	_, path, _ := strings.Cut(rest[hosts:], "/")
	return url.PathUnescape(strings.Trim(path, "/"))
}

// Redact returns a URI without the secrets in it, for printing: its password, and options that hold some. It also takes them out of what
// is not quite a URI: then of all that may be a user and a password nothing is left but the user.
func Redact(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		if strings.HasPrefix(uri, "sqlite:") {
			return uri // a path, in which these characters may stand
		}
		return secretOption.ReplaceAllString(secretOfUser.ReplaceAllString(uri, ":***@"), "$1***")
	}
	if at := strings.LastIndexByte(beforeOptions(rest), '@'); at >= 0 {
		if user, _, secret := strings.Cut(rest[:at], ":"); secret {
			rest = user + ":***" + rest[at:]
		}
	}
	return scheme + "://" + secretOption.ReplaceAllString(rest, "$1***")
}

// beforeOptions cuts off the options, unless a password that is not escaped may hold the question mark.
func beforeOptions(rest string) string {
	authority, options, _ := strings.Cut(rest, "?")
	if strings.Contains(authority, "@") || !strings.Contains(options, "@") {
		return authority
	}
	return rest
}

// selectionTimeout is how long a server is looked for where the URI does not say.
const selectionTimeout = 10 * time.Second
