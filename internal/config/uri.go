package config

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A connection is how to reach MongoDB, as a file says, without auth.
type connection struct {
	host               host
	port               string   // for a mongohost that is no URI and has none
	options            []option // those that follow from the attributes
	username, password string   // of attributes; auth comes first
	authSource         string   // db_name of attributes
	mechanism          string
}

type option struct{ name, value string }

// A host is a mongohost in its parts, as they are written.
type host struct {
	scheme   string // with ://; "" for HOST[:PORT]
	login    string // USER or USER:PASSWORD
	hosts    string
	database string // that knows the user
	query    string
}

// mechanismNone says that nobody logs in.
const mechanismNone = "NONE"

// parseHost splits a mongohost. A message about a mistake does not quote it, because it may contain
// a password.
func parseHost(s string) (h host, wrong string) {
	scheme, rest, isURI := strings.Cut(s, "://")
	switch {
	case !isURI && strings.ContainsAny(s, "/?@ "):
		return host{}, "is neither a MongoDB URI nor HOST:PORT; write mongodb://HOST:PORT"
	case !isURI:
		rest = s
	case scheme != "mongodb" && scheme != "mongodb+srv":
		return host{}, "is not the URI of a MongoDB server; write mongodb://HOST:PORT or mongodb+srv://HOST"
	default:
		h.scheme = scheme + "://"
	}
	rest, h.query, _ = strings.Cut(rest, "?")
	at := strings.LastIndexByte(rest, '@')
	h.login = rest[:max(at, 0)]
	name, password, _ := strings.Cut(h.login, ":")
	for _, word := range []string{name, password} {
		if _, err := url.PathUnescape(word); err != nil || strings.ContainsAny(word, ":/@") || at < 0 && strings.Contains(h.query, "@") {
			return host{}, "has a user or a password with letters such as @, :, /, % and ? in it; write those as %40, %3A, %2F, %25 and %3F"
		}
	}
	h.hosts, h.database, _ = strings.Cut(rest[at+1:], "/")
	if slices.Contains(strings.Split(h.hosts, ","), "") {
		return host{}, "names no host, or has a comma too many; write mongodb://HOST:PORT"
	}
	for one := range strings.SplitSeq(h.hosts, ",") {
		_, port, hasPort := strings.Cut(one[strings.LastIndexByte(one, ']')+1:], ":") // an IPv6 address is in brackets
		number, err := strconv.ParseUint(port, 10, 16)
		switch {
		case strings.ContainsAny(one, " \t\r\n"):
			return host{}, "has a blank in a host; write mongodb://HOST1:PORT,HOST2:PORT without any"
		case hasPort && h.scheme == "mongodb+srv://":
			return host{}, "has a port, which mongodb+srv looks up itself; take it out, or write mongodb://HOST:PORT"
		case hasPort && (err != nil || number == 0):
			return host{}, "has a port that is none; write a number from 1 to 65535, and an IPv6 address in brackets"
		}
	}
	if h.scheme == "mongodb+srv://" && strings.Contains(h.hosts, ",") {
		return host{}, "names several hosts, which mongodb+srv looks up itself; leave one, or write mongodb://HOST1:PORT,HOST2:PORT"
	}
	return h, ""
}

// secretOption is one that a driver takes and nobody may see.
var secretOption = regexp.MustCompile(`(?i)((?:^|&)\w*(?:password|properties)=)[^&]*`)

// redacted is the host without secrets.
func (h *host) redacted() string {
	s := h.scheme
	if h.login != "" {
		user, _, hasPassword := strings.Cut(h.login, ":")
		if s += user; hasPassword {
			s += ":" + stars
		}
		s += "@"
	}
	s += h.hosts
	if h.database != "" || h.query != "" {
		s += "/" + h.database
	}
	if h.query != "" {
		s += "?" + secretOption.ReplaceAllString(h.query, "${1}"+stars)
	}
	return s
}

// option returns what the URI itself says of an option. Go's driver has two names for TLS.
func (h *host) option(name string) (value string, given bool) {
	for pair := range strings.SplitSeq(h.query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(key, name) || name == "tls" && strings.EqualFold(key, "ssl") {
			return unescape(value), true
		}
	}
	return "", false
}

// URI returns the MongoDB URI by which a user connects, for Go's driver. It names the database. It
// has the user's name and password from auth, or those of mongohost or attributes. As in Perl,
// options of mongohost win over attributes. MongoDB looks the user up in the database unless
// mongohost or db_name name another one. URI returns an error for a user that auth does not have.
// The result holds the password; the error does not.
func (c *Config) URI(user User) (string, error) {
	h := &c.host
	login, source := h.login, c.Database
	password, known := c.Auth[user]
	mechanism := c.effectiveMechanism()
	switch {
	case login != "":
		source = "admin" // where users of a URI are, if it does not say
	case mechanism == mechanismNone:
	case c.Auth != nil && !known:
		return "", fmt.Errorf("%s: auth has no password for %s; add it", c.Name, user)
	case c.Auth != nil:
		login = escape(string(user)) + ":" + escape(password)
	case c.username != "":
		login = escape(c.username)
		if c.password != "" {
			login += ":" + escape(c.password)
		}
	}
	switch {
	case login == "":
		source = ""
	case h.database != "":
		source = unescape(h.database)
	case c.authSource != "":
		source = c.authSource
	case slices.Contains(outside, mechanism):
		source = ""
	}
	return c.address(login, source, h.query, c.options), nil
}

// outside are the mechanisms whose users are in no database.
var outside = []string{"GSSAPI", "MONGODB-X509", "MONGODB-AWS"}

// effectiveMechanism is how users log in; "" if that is left to the server.
func (c *Config) effectiveMechanism() string {
	if mechanism, given := c.host.option("authMechanism"); given {
		return mechanism
	}
	return c.mechanism
}

// UsersIn returns the database in which the users of auth are looked up when they log in. It returns an error where they never log in with
// their passwords.
func (c *Config) UsersIn() (string, error) {
	h := &c.host
	mechanism := c.effectiveMechanism()
	switch {
	case h.login != "":
		return "", fmt.Errorf("%s: mongohost has a user, with which every program logs in; remove it, so that each program logs in as itself", c.Name)
	case mechanism == mechanismNone:
		return "", fmt.Errorf("%s: auth_mechanism is NONE, so that no program logs in; remove it, so that each program logs in as itself", c.Name)
	case slices.Contains(outside, mechanism), mechanism == "PLAIN":
		return "", fmt.Errorf("%s: users that log in by %s have no password in MongoDB; make them as its manual says", c.Name, mechanism)
	}
	if source, given := h.option("authSource"); given {
		return source, nil
	}
	return cmp.Or(unescape(h.database), c.authSource, c.Database), nil
}

// AdminURI is URI for an administrator, whom the file does not have and another database knows.
// Without a name nobody logs in. The file's settings for logging in are for the users of auth only.
func (c *Config) AdminURI(name, password, knownIn string) string {
	about := func(option string) bool {
		return slices.ContainsFunc([]string{"authSource", "authMechanism", "authMechanismProperties"}, func(o string) bool { return strings.EqualFold(o, option) })
	}
	pairs := slices.DeleteFunc(strings.Split(c.host.query, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return about(name)
	})
	options := slices.DeleteFunc(slices.Clone(c.options), func(o option) bool { return about(o.name) })
	login := ""
	if name == "" {
		knownIn = ""
	} else {
		login = escape(name) + ":" + escape(password)
	}
	return c.address(login, knownIn, strings.Join(pairs, "&"), options)
}

// address writes a URI from the login, the database that knows the user, and the options of
// mongohost. Missing options get their defaults.
func (c *Config) address(login, source, query string, options []option) string {
	h := &c.host
	b := strings.Builder{}
	if h.scheme == "" {
		b.WriteString("mongodb://")
	} else {
		b.WriteString(h.scheme)
	}
	if login != "" {
		b.WriteString(login + "@")
	}
	b.WriteString(h.hosts)
	if h.scheme == "" && c.port != "" && !strings.Contains(h.hosts, ":") {
		b.WriteString(":" + c.port)
	}
	b.WriteString("/" + escape(c.Database))
	if source != "" {
		options = append(slices.Clip(options), option{"authSource", source})
	}
	for _, o := range options {
		if _, given := (&host{query: query}).option(o.name); given {
			continue
		}
		if query != "" {
			query += "&"
		}
		query += o.name + "=" + escape(o.value)
	}
	if query != "" {
		b.WriteString("?" + query)
	}
	return b.String()
}

// escape writes a word for any place of a URI. Go's driver takes a + for itself in names and passwords, and for a blank in options.
func escape(word string) string { return strings.ReplaceAll(url.QueryEscape(word), "+", "%20") }

func unescape(word string) string {
	if plain, err := url.PathUnescape(word); err == nil {
		return plain
	}
	return word
}
