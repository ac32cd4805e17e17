package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A connection is what a file says of how to reach MongoDB, beside auth.
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

// parseHost takes a mongohost apart. What it says is wrong does not quote it: there may be a password in it.
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

// URI returns the MongoDB URI by which a user connects, for Go's driver: it names the database, and has the user's name and password from
// auth, or those that mongohost or attributes have. What mongohost itself says comes before attributes, as it does in Perl. The user is
// looked up in the database unless mongohost or db_name name another one. URI returns an error for a user that auth does not have. The
// result holds the password; the error does not.
func (c *Config) URI(user User) (string, error) {
	h := &c.host
	b := strings.Builder{}
	if h.scheme == "" {
		b.WriteString("mongodb://")
	} else {
		b.WriteString(h.scheme)
	}
	login, source := h.login, c.Database
	password, known := c.Auth[user]
	mechanism, given := h.option("authMechanism")
	if !given {
		mechanism = c.mechanism
	}
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
	if login != "" {
		b.WriteString(login + "@")
	}
	b.WriteString(h.hosts)
	if h.scheme == "" && c.port != "" && !strings.Contains(h.hosts, ":") {
		b.WriteString(":" + c.port)
	}
	b.WriteString("/" + escape(c.Database))
	options := slices.Clone(c.options)
	switch {
	case login == "":
	case h.database != "":
		options = append(options, option{"authSource", unescape(h.database)})
	case c.authSource != "":
		options = append(options, option{"authSource", c.authSource})
	case !slices.Contains([]string{"GSSAPI", "MONGODB-X509", "MONGODB-AWS"}, mechanism): // those users are in no database
		options = append(options, option{"authSource", source})
	}
	query := h.query
	for _, o := range options {
		if _, given := h.option(o.name); given {
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
	return b.String(), nil
}

// escape writes a word for any place of a URI. Go's driver takes a + for itself in names and passwords, and for a blank in options.
func escape(word string) string { return strings.ReplaceAll(url.QueryEscape(word), "+", "%20") }

func unescape(word string) string {
	if plain, err := url.PathUnescape(word); err == nil {
		return plain
	}
	return word
}
