package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/seed-1177d267/sluice/plan"
)

// Codes of the server that are told apart.
const (
	codeInternal      = 1
	codeNoCollection  = 26
	CodeUnauthorized  = 13
	CodeNotAuthentic  = 18
	codeWriteConflict = 112
	codeOutOfDisk     = 14031
	codeBadValue      = 2
	codeTypeMismatch  = 14
	CodeNoCommand     = 59
	codeNotViable     = 28  // a field in something that has no fields
	codeInvalid       = 121 // by the rules that the collection was given
	codeParallel      = 171 // two lists that one index is over
	codeKeyTooLong    = 17280
	codeTooLarge      = 10334
	codeGrowsTooLarge = 17419
	codeMovesTooLarge = 17420
	codeDeadlock      = 16908292 // PostgreSQL's 40P01, as DocumentDB passes it on of one of several writes
)

// Clashes is how often a write is made again of which the server says that it got into another one's way and was not made.
const Clashes = 20

// WithoutClash repeats a write until the server does not report a clash. The caller of many writes
// handles the report on one of these.
func WithoutClash(ctx context.Context, do func() error) error {
	err := do()
	for again := 1; again < Clashes && IsClash(err) && writeErrors(err) == nil; again++ {
		if err := afterClash(ctx, again); err != nil {
			return err
		}
		err = do()
	}
	return err
}

// afterClash lets the other write go on, which may have to be woken up on a busy machine. It waits longer the more often that was of no
// use, and each time otherwise, so that two do not go on so.
func afterClash(ctx context.Context, again int) error {
	const longest = time.Second
	return Nap(ctx, rand.N(min(20*time.Millisecond<<(again-1), longest)))
}

// IsClash reports whether a write was not made since it and another one wait for each other. MongoDB sees that at once; servers on
// PostgreSQL after a second, and of a command of one write they say only in words what it was. These servers may also refuse a write
// because its collection is not there or cannot be made, while another command is making a collection; MongoDB never does.
func IsClash(err error) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && (server.HasErrorCode(codeWriteConflict) || server.HasErrorCode(codeDeadlock) || server.HasErrorCode(codeNoCollection) ||
		server.HasErrorCodeWithMessage(codeInternal, "deadlock detected") || server.HasErrorCodeWithMessage(codeInternal, "Unable to create the specified collection"))
}

// isMisfit reports whether a write was refused for what is in its one document. Other errors may be gone the next time.
func isMisfit(e mongo.BulkWriteError) bool {
	switch e.Code {
	case codeBadValue, codeTypeMismatch, codeNotViable, codeInvalid, codeParallel, codeKeyTooLong:
		return true
	}
	return IsTooLarge(e)
}

// IsTooLarge reports whether the document would be larger than a server takes. Servers on PostgreSQL say so in words only.
func IsTooLarge(e mongo.BulkWriteError) bool {
	switch e.Code {
	case codeTooLarge, codeGrowsTooLarge, codeMovesTooLarge:
		return true
	}
	return strings.Contains(e.Message, "larger than MaxDocumentSize")
}

// writeErrors returns what a command of many writes says of those that failed, nil if that is not what the error is about.
func writeErrors(err error) []mongo.BulkWriteError {
	var many mongo.BulkWriteException
	if errors.As(err, &many) && many.WriteConcernError == nil {
		return many.WriteErrors
	}
	return nil
}

// Translate makes the driver's errors into those that callers can act on; the driver's stays inside.
func Translate(err error) error {
	if err == nil {
		return nil
	}
	var server mongo.ServerError
	isServer := errors.As(err, &server)
	looked, isLooked := errors.AsType[topology.ServerSelectionError](err)
	conn, isConn := errors.AsType[topology.ConnectionError](err)
	_, isLogin := errors.AsType[*auth.Error](err)
	var closed driver.RetryablePoolError // all connections, since one of them failed
	isNetwork := mongo.IsNetworkError(err) || mongo.IsTimeout(err) || errors.As(err, &closed)
	switch {
	case errors.Is(err, context.Canceled) && isLooked:
		return context.Canceled // who has given up needs to know nothing of servers
	case errors.Is(err, context.Canceled):
		return err
	case isLooked:
		return noServer(looked)
	case isServer && server.HasErrorCode(codeOutOfDisk):
		return fmt.Errorf("%w: %w", plan.ErrFull, Redacted(err))
	case isServer && server.HasErrorCode(CodeNotAuthentic), isLogin && !isNetwork:
		return &Unreachable{
			What:   "MongoDB refuses the user: authentication failed",
			Remedy: "check the user and the password in the URI, and add authSource=admin if the user is kept there", Err: err,
		}
	case isServer && server.HasErrorCode(CodeUnauthorized):
		why, _, _ := strings.Cut(Redacted(err).Error(), " to execute command")
		return &Unreachable{What: "MongoDB refuses access: " + why, Remedy: "name a user in the URI who may read and write the database", Err: err}
	case isNetwork && isConn:
		return broken(conn, err)
	case errors.As(err, new(topology.WaitQueueTimeoutError)): // calls have all connections, and no answer
		return silent(err)
	case isNetwork, errors.Is(err, mongo.ErrClientDisconnected):
		return fmt.Errorf("%w: %w", plan.ErrUnavailable, Redacted(err))
	}
	return Redacted(err)
}

// An Unreachable error says in one line why there is no server to work with. The driver's own text holds all that it knows of every
// server, and in the end not the one word that helps.
type Unreachable struct {
	What   string
	Within time.Duration // how long a server was looked for, if that is known
	Remedy string
	Err    error
}

func (u *Unreachable) Error() string {
	within := ""
	if u.Within > 0 {
		within = fmt.Sprintf(" within %v", u.Within)
	}
	return u.What + within + "; " + u.Remedy
}

func (u *Unreachable) Unwrap() []error { return []error{plan.ErrUnavailable, u.Err} }

// at names the hosts that were tried.
func at(hosts ...string) string {
	if len(hosts) == 0 {
		return "MongoDB cannot be reached"
	}
	return "MongoDB cannot be reached at " + strings.Join(hosts, ", ")
}

// broken says what became of one connection.
func broken(conn topology.ConnectionError, err error) error {
	host, _, _ := strings.Cut(conn.ConnectionID, "[") // then it says which connection to that host
	if op, ok := errors.AsType[*net.OpError](err); ok && host == "" && op.Addr != nil {
		host = op.Addr.String()
	}
	what, remedy := causeOf(conn)
	if host == "" {
		return &Unreachable{What: at() + ": " + what, Remedy: remedy, Err: err}
	}
	return &Unreachable{What: at(host + " (" + what + ")"), Remedy: remedy, Err: err}
}

// silent says that a server accepted connections and does not answer on them. A call that waited
// for a connection does not know whose they are.
func silent(err error) error {
	return &Unreachable{What: "MongoDB does not answer: calls wait for it on all connections", Remedy: "look how the server is, and what is between", Err: err}
}

// noServer says of each server why it is not the one that was looked for.
func noServer(looked topology.ServerSelectionError) error {
	var hosts, remedies []string
	for _, s := range looked.Desc.Servers {
		what, remedy := causeOf(s.LastError)
		if s.Kind != description.Unknown {
			what, remedy = "not the primary", "of a replica set more than half of the members have to be up"
		}
		hosts = append(hosts, fmt.Sprintf("%s (%s)", s.Addr, what))
		if !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	if len(hosts) == 0 { // servers that are of no set, or of another one, are left out
		remedies = []string{"no server is in the replica set that the URI names: check replicaSet there"}
	}
	return &Unreachable{What: at(hosts...), Remedy: strings.Join(remedies, "; "), Err: looked}
}

// causeOf says in a few words why there is no connection to a server, and what can be done. Nil is a server that has not answered yet.
func causeOf(err error) (what, remedy string) {
	const tlsOptions = "check tls in the URI, and tlsCAFile and tlsCertificateKeyFile"
	var dns *net.DNSError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	var op *net.OpError
	var reply driver.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host", "check the host's name"
	case errors.As(err, &dns):
		return "its name is not resolved: " + dns.Err, "check the host's name, and this machine's name servers"
	case err == nil, errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled): // the driver cancels the try that is under way when the time is over
		return "no answer: timeout", "check the host and the port, and that no firewall is between; serverSelectionTimeoutMS in the URI sets how long to wait"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", "start the server there, or check the host and the port"
	case errors.As(err, &tls.RecordHeaderError{}):
		return "no TLS there", "check the port, and tls in the URI"
	case errors.As(err, &certificate):
		return "TLS: " + strings.TrimPrefix(certificate.Err.Error(), "x509: "), tlsOptions
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection closed by the server", "check the port, and that tls in the URI is as the server has it"
	case errors.As(err, &op):
		if alert, ok := strings.CutPrefix(op.Err.Error(), "tls: "); ok { // the server's; its type is not exported
			return "TLS: " + alert, tlsOptions
		}
		return op.Err.Error(), "check the host and the port"
	case errors.As(err, &reply) && reply.Code != 0:
		return reply.Message, "look into the server's log"
	case notMongoDB.MatchString(err.Error()):
		return "not a MongoDB server", "check the host and the port"
	}
	if conn, ok := errors.AsType[topology.ConnectionError](err); ok && conn.Wrapped != nil {
		err = conn.Wrapped // without the number of the connection
	}
	return Redacted(err).Error(), "check the host and the port"
}

// notMongoDB finds what the driver says of an answer that is no message of MongoDB's. It has no type for it.
var notMongoDB = regexp.MustCompile(`^(?:.* )?(?:cannot decode result from .*|length of read message too large|malformed message length: .*)$`)

// Redacted returns an error whose text holds no credentials: the driver's own texts may quote the URI.
func Redacted(err error) error {
	text := secretOption.ReplaceAllString(credentials.ReplaceAllString(err.Error(), "//***@"), "$1***")
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

var (
	secretOption = regexp.MustCompile(`(?i)([\w]*(?:password|properties)=)[^&\s"'\x60]*`)
	secretOfUser = regexp.MustCompile(`:(?:[^/].*|/[^:]*[^:/])@`) // of what has no ://
	credentials  = regexp.MustCompile(`//.*@`)
)
