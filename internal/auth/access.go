package auth

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// An Access is what an access file says: who there is. It is not changed once it is read.
type Access struct {
	Users  []User  `json:"users,omitempty"`
	Tokens []Token `json:"tokens,omitempty"`
	Proxy  *Proxy  `json:"proxy,omitempty"`
}

// A User is a person who logs in by a password.
type User struct {
	Name     string `json:"name"`
	Password string `json:"password"` // its hash
	Role     Role   `json:"role"`

	hash passwordHash
}

// A Token is what a program shows instead of a name and a password.
type Token struct {
	ID      string    `json:"id"`     // who it is in the audit log
	SHA256  string    `json:"sha256"` // of the token, in hex
	Scopes  Scopes    `json:"scopes"`
	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Note    string    `json:"note,omitempty"`

	sum []byte
}

// A Proxy is a server between the callers and this one. This server trusts the proxy's headers
// about callers, and nobody else's.
type Proxy struct {
	From []string `json:"from"` // its addresses, as 10.0.0.1 or 10.0.0.0/24; "unix" is what comes through a Unix socket
	// Header holds the name of the user whom the proxy let in, as X-Remote-User; "": the proxy lets nobody in.
	Header string          `json:"header,omitempty"`
	Roles  map[string]Role `json:"roles,omitempty"` // of users by name
	Role   Role            `json:"role,omitempty"`  // of all others; "": they are refused
	// ClientHeader holds the caller's address, last in it if it is a list, as X-Forwarded-For; "": all callers have the proxy's.
	ClientHeader string `json:"client_header,omitempty"`

	from []netip.Prefix
	unix bool
}

// overUnix is the word for a Unix socket among a proxy's addresses.
const overUnix = "unix"

// nameForm is the form of names of users and tokens: text that a header, a log and a shell carry
// unchanged. A colon would end the name in HTTP's Basic authentication.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

// CheckName says why a user or a token cannot have a name.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%.80q cannot be a name; it is made of letters, digits and . _ @ + -, begins with a letter or a digit, and is 64 long at most", name)
	}
	return nil
}

// Parse reads the text of an access file. name is that of the file, for errors. No error shows a hash.
func Parse(name string, data []byte) (*Access, error) {
	a := &Access{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(a)
	if err == nil {
		end := int(dec.InputOffset())
		if _, none := dec.Token(); none != io.EOF {
			return nil, fmt.Errorf("%s: text follows the end of the object; remove it", place(name, data, end))
		}
		// Go merges the values of a key that occurs twice, in upper or lower case, and a reader may see only one of them.
		if key := jsontext.TwiceAs(data[:end], strings.ToLower); key != "" {
			return nil, fmt.Errorf("%s: %.80q is twice in one object; merge the two", name, key)
		}
		err = a.check()
	}
	if err != nil {
		return nil, wrong(name, data, err)
	}
	return a, nil
}

// wrong is an error with its place.
func wrong(name string, data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return fmt.Errorf("%s is empty; sluice access user add and sluice access token add write it", name)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the JSON ends too early", place(name, data, len(data)))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: it is not JSON: %s", place(name, data, int(syntax.Offset)-1), syntax)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: %s cannot be a %s", place(name, data, int(kind.Offset)-1), cmp.Or(kind.Field, "the file"), kind.Value)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	return errors.New(name + ": " + strings.ReplaceAll(text, "\n", "\n"+name+": ")) // a line for each mistake
}

func place(name string, data []byte, at int) string {
	line, column := (&textfile.Source{Name: name, Text: data}).Place(min(max(at, 0), len(data)))
	return fmt.Sprintf("%s:%d:%d", name, line, column)
}

// check looks what the file says over, and prepares it for use.
func (a *Access) check() error {
	var errs []error
	say := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	named := map[string]bool{}
	for i := range a.Users {
		u := &a.Users[i]
		what := fmt.Sprintf("user %.80q", u.Name)
		say(what, CheckName(u.Name))
		say(what, u.Role.check())
		if named[u.Name] {
			say(what, errors.New("it is there twice"))
		}
		named[u.Name] = true
		var err error
		u.hash, err = parsePasswordHash(u.Password)
		say(what, err)
	}
	clear(named)
	sums := map[string]string{}
	for i := range a.Tokens {
		t := &a.Tokens[i]
		what := fmt.Sprintf("token %.80q", t.ID)
		say(what, CheckName(t.ID))
		if named[t.ID] {
			say(what, errors.New("it is there twice"))
		}
		named[t.ID] = true
		var err error
		t.Scopes, err = t.Scopes.check()
		say(what, err)
		t.sum, err = hex.DecodeString(t.SHA256)
		if err != nil || len(t.sum) != sha256.Size {
			say(what, errors.New("sha256 is not 64 hex digits, as sluice access token add writes them"))
		} else if other, there := sums[string(t.sum)]; there {
			say(what, fmt.Errorf("it is the same as token %q", other))
		}
		sums[string(t.sum)] = t.ID
	}
	if a.Proxy != nil {
		say("proxy", a.Proxy.check())
	}
	return errors.Join(errs...)
}

func (p *Proxy) check() error {
	var errs []error
	p.from, p.unix = nil, false
	for _, text := range p.From {
		if text == overUnix {
			p.unix = true
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, notOne := netip.ParseAddr(text)
			if notOne != nil {
				errs = append(errs, fmt.Errorf("from: %q is no address; write it as 10.0.0.1, 10.0.0.0/24 or %s", text, overUnix))
				continue
			}
			prefix = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		}
		if prefix.Addr().Zone() != "" || prefix.Addr().Is4In6() {
			errs = append(errs, fmt.Errorf("from: %q cannot be compared with a caller's address; write it without zone, and IPv4 as such", text))
			continue
		}
		p.from = append(p.from, prefix.Masked())
	}
	if len(p.From) == 0 {
		errs = append(errs, errors.New("from: it has no address; list the proxies to believe"))
	}
	for _, header := range []string{p.Header, p.ClientHeader} {
		switch {
		case strings.ContainsFunc(header, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }):
			errs = append(errs, fmt.Errorf("header: %q cannot be the name of a header", header))
		case slices.Contains([]string{"Authorization", "Cookie", "Host", "Origin"}, textproto.CanonicalMIMEHeaderKey(header)):
			errs = append(errs, fmt.Errorf("header: %s has a meaning of its own; let the proxy send another one", header))
		}
	}
	for name, role := range p.Roles {
		if err := role.check(); err != nil {
			errs = append(errs, fmt.Errorf("roles: %.80q: %w", name, err))
		}
		if err := checkProxied(name); err != nil {
			errs = append(errs, fmt.Errorf("roles: %w", err))
		}
	}
	if p.Role != "" {
		if err := p.Role.check(); err != nil {
			errs = append(errs, fmt.Errorf("role: %w", err))
		}
	}
	if p.Header == "" && (p.Role != "" || len(p.Roles) > 0) {
		errs = append(errs, errors.New("roles needs header, which names the users"))
	}
	if p.Header != "" && p.Role == "" && len(p.Roles) == 0 {
		errs = append(errs, errors.New("it names users without a role; add roles, or role for all"))
	}
	return errors.Join(errs...)
}

// checkProxied says why a proxy's user cannot have a name: these come from elsewhere, and may look as they do there.
func checkProxied(name string) error {
	if name == "" || len(name) > 256 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%.80q cannot be the name of a user", name)
	}
	return nil
}

// Empty reports whether nobody at all is let in.
func (a *Access) Empty() bool {
	return len(a.Users) == 0 && len(a.Tokens) == 0 && (a.Proxy == nil || a.Proxy.Header == "")
}
