package mongodb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/seed-1177d267/sluice/internal/closedport"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// serve answers each connection to a port of this host as do does, and returns its address. A connection is open until the test ends, or
// do closes it.
func serve(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go do(c)
		}
	}()
	return l.Addr().String()
}

// nameServer is the address of the name server that this process asks, "" for that of the system. It is asked by a resolver that is there from
// the start, since drivers' goroutines, which end when they like, read net's variable.
var nameServer atomic.Value

func init() {
	nameServer.Store("")
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if own := nameServer.Load().(string); own != "" {
			network, address = "udp", own
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

// noNames lets this process's name server be one that knows no name.
func noNames(t *testing.T) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nameServer.Store(server.LocalAddr().String())
	t.Cleanup(func() {
		nameServer.Store("")
		_ = server.Close()
	})
	go func() {
		for b := make([]byte, 1500); ; {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			b[2], b[3] = b[2]|0x80, b[3]|0x80|3 // an answer (RFC 1035, 4.1.1): there is no such name
			_, _ = server.WriteTo(b[:n], from)
		}
	}()
}

func TestOpenSaysWhyThereIsNoServer(t *testing.T) {
	noNames(t)
	quiet := log.New(io.Discard, "", 0)
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = quiet
	web.StartTLS()
	t.Cleanup(web.Close)
	picky := httptest.NewUnstartedServer(http.NotFoundHandler())
	picky.Config.ErrorLog, picky.TLS = quiet, &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	picky.StartTLS()
	t.Cleanup(picky.Close)
	silent := serve(t, func(net.Conn) {})
	closed, _ := closedport.New(t)
	shut := serve(t, func(c net.Conn) { _ = c.Close() })
	ssh := serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2p1\r\n") })
	mysql := serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "\x4a\x00\x00\x00\x0a8.0.35"+strings.Repeat("\x00", 67)) })

	const noAnswer = "(no answer: timeout)"
	cases := []struct{ name, hosts, options, want string }{
		{
			"a closed port", closed, "",
			"at " + closed + " (connection refused) within TIME; start the server there, or check the host and the port",
		},
		{"a host that has no address", "db.invalid:27017", "", "at db.invalid:27017 (no such host) within TIME; check the host's name"},
		{
			"a port that accepts and never answers", silent, "",
			"at " + silent + " (no answer: timeout) within TIME; check the host and the port, and that no firewall is between; " +
				"serverSelectionTimeoutMS in the URI sets how long to wait",
		},
		{
			"one whose connections were given up already", silent, "&connectTimeoutMS=50",
			"at " + silent + " (no answer: timeout) within TIME; check the host and the port, and that no firewall is between; " +
				"serverSelectionTimeoutMS in the URI sets how long to wait",
		},
		{
			"a server that closes the connection", shut, "",
			"at " + shut + " (connection closed by the server) within TIME; check the port, and that tls in the URI is as the server has it",
		},
		{"a server of text lines", ssh, "", "at " + ssh + " (not a MongoDB server) within TIME; check the host and the port"},
		{"a server of another binary protocol", mysql, "", "at " + mysql + " (not a MongoDB server) within TIME; check the host and the port"},
		{
			"a server that wants TLS", web.Listener.Addr().String(), "",
			"at " + web.Listener.Addr().String() + " (connection closed by the server) within TIME; check the port, and that tls in the URI is as the server has it",
		},
		{
			"a server whose certificate nobody knows", web.Listener.Addr().String(), "&tls=true",
			"at " + web.Listener.Addr().String() + " (TLS: certificate signed by unknown authority) within TIME; " +
				"check tls in the URI, and tlsCAFile and tlsCertificateKeyFile",
		},
		{
			"a server that wants a certificate", picky.Listener.Addr().String(), "&tls=true&tlsInsecure=true",
			"at " + picky.Listener.Addr().String() + " (TLS: certificate required) within TIME; " +
				"check tls in the URI, and tlsCAFile and tlsCertificateKeyFile",
		},
		{"a server without TLS", ssh, "&tls=true", "at " + ssh + " (no TLS there) within TIME; check the port, and tls in the URI"},
		{
			"several hosts of which one has no port", closed + ",db.invalid", "&replicaSet=rs",
			"at " + closed + " (connection refused), db.invalid:27017 (no such host) within TIME; " +
				"start the server there, or check the host and the port; check the host's name",
		},
		{
			"several hosts", closed + ",db.invalid:1," + silent, "&replicaSet=rs",
			"at " + closed + " (connection refused), db.invalid:1 (no such host), " + silent + " (no answer: timeout) within TIME; " +
				"start the server there, or check the host and the port; check the host's name; check the host and the port, and that no firewall " +
				"is between; serverSelectionTimeoutMS in the URI sets how long to wait",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			var uri, got string
			for look := time.Second; ; look *= 2 {
				uri = fmt.Sprintf("mongodb://me:secret@%s/x?serverSelectionTimeoutMS=%d%s", c.hosts, look.Milliseconds(), c.options)
				_, err := Open(t.Context(), uri, Options{})
				if !errors.Is(err, plan.ErrUnavailable) {
					t.Fatalf("got %v, want ErrUnavailable", err)
				}
				got = regexp.MustCompile(` within [1-9]\S*;`).ReplaceAllString(err.Error(), " within TIME;")
				// A busy machine may have no answer within that time: it looks for longer.
				if look > time.Minute || strings.Count(got, noAnswer) <= strings.Count(c.want, noAnswer) {
					break
				}
			}
			want := "open " + Redact(uri) + ": MongoDB cannot be reached " + c.want
			if got != want || strings.Contains(got, "secret") {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("a cluster without a record", func(t *testing.T) {
		_, err := Open(t.Context(), "mongodb+srv://me:secret@db.invalid/x", Options{})
		want := "open mongodb+srv://me:***@db.invalid/x: MongoDB cannot be reached at _mongodb._tcp.db.invalid (no such host); " +
			"check the host's name, or write mongodb:// for one that has no SRV record"
		if !errors.Is(err, plan.ErrUnavailable) || err.Error() != want {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
	})
}

func TestOpenSaysHowLongItLooked(t *testing.T) {
	began := time.Now()
	closed, _ := closedport.New(t)
	_, err := Open(t.Context(), "mongodb://"+closed+"/x?serverSelectionTimeoutMS=500", Options{})
	took := time.Since(began)
	var said time.Duration
	if m := regexp.MustCompile(` within (\S+);`).FindStringSubmatch(fmt.Sprint(err)); m != nil {
		said, _ = time.ParseDuration(m[1])
	}
	if said < 400*time.Millisecond || said > took.Round(100*time.Millisecond) {
		t.Errorf("%v: it says %v, and took %v", err, said, took)
	}
}

func TestWhoGivesUpIsNotToldOfServers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, stop)
	closed, _ := closedport.New(t)
	_, err := Open(ctx, "mongodb://"+closed+"/x", Options{})
	if !errors.Is(err, context.Canceled) || errors.Is(err, plan.ErrUnavailable) || strings.Contains(err.Error(), "topology") {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

// The server of these tests lets anybody in who names no user.
func TestOpenSaysThatTheUserIsRefused(t *testing.T) {
	uri, _ := database(t)
	head, tail, _ := strings.Cut(uri, "://")
	_, err := Open(t.Context(), head+"://me:secret@"+tail[strings.LastIndexByte(tail, '@')+1:], Options{})
	if !errors.Is(err, plan.ErrUnavailable) || strings.Contains(err.Error(), "secret") ||
		!strings.Contains(err.Error(), ": MongoDB refuses the user: authentication failed; check the user and the password in the URI, and add authSource=admin") {
		t.Errorf("got %v, want that the user is refused, and what to look at", err)
	}
}

func TestTranslate(t *testing.T) {
	lost := func(id string, err error) error {
		return mongo.CommandError{Labels: []string{"NetworkError"}, Wrapped: topology.ConnectionError{ConnectionID: id, Wrapped: err}}
	}
	refused := &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 27017}, Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name string
		err  error
		is   error
		want string
	}{
		{
			"a connection to a host", lost("db:27017[-5]", syscall.ECONNRESET), plan.ErrUnavailable,
			"MongoDB cannot be reached at db:27017 (connection closed by the server); check the port, and that tls in the URI is as the server has it",
		},
		{
			"a connection that was never made", lost("", refused), plan.ErrUnavailable,
			"MongoDB cannot be reached at 10.0.0.1:27017 (connection refused); start the server there, or check the host and the port",
		},
		{
			"a connection of which nothing is known", lost("", io.EOF), plan.ErrUnavailable,
			"MongoDB cannot be reached: connection closed by the server; check the port, and that tls in the URI is as the server has it",
		},
		{
			"an answer that did not come", lost("db:27017[-5]", os.ErrDeadlineExceeded), plan.ErrUnavailable,
			"MongoDB cannot be reached at db:27017 (no answer: timeout); check the host and the port, and that no firewall is between; " +
				"serverSelectionTimeoutMS in the URI sets how long to wait",
		},
		{
			"an error that has no type", lost("db:27017[-5]", errors.New("odd")), plan.ErrUnavailable,
			"MongoDB cannot be reached at db:27017 (odd); check the host and the port",
		},
		{
			"a user who may not", mongo.CommandError{Code: 13, Name: "Unauthorized", Message: "not authorized on x to execute command { find: \"meta\" }"},
			plan.ErrUnavailable,
			"MongoDB refuses access: (Unauthorized) not authorized on x; name a user in the URI who may read and write the database",
		},
		{
			"no connection that is free", fmt.Errorf("find: %w", topology.WaitQueueTimeoutError{Wrapped: context.DeadlineExceeded}), plan.ErrUnavailable,
			"MongoDB does not answer: calls wait for it on all connections; look how the server is, and what is between",
		},
		{"a full disk", mongo.CommandError{Code: 14031, Name: "OutOfDiskSpace", Message: "no space"}, plan.ErrFull, "the store is full: (OutOfDiskSpace) no space"},
		{"a set without a primary", topology.ServerSelectionError{Desc: description.Topology{Servers: []description.Server{
			{Addr: "a:1", Kind: description.ServerKindRSSecondary}, {Addr: "b:1", LastError: refused},
		}}}, plan.ErrUnavailable, "MongoDB cannot be reached at a:1 (not the primary), b:1 (connection refused); " +
			"of a replica set more than half of the members have to be up; start the server there, or check the host and the port"},
		{"no server of the set", topology.ServerSelectionError{}, plan.ErrUnavailable, "MongoDB cannot be reached; no server is in the replica set that " +
			"the URI names: check replicaSet there"},
		{"what nobody can act on", errors.New("odd"), nil, "odd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := wire.Translate(c.err)
			if got.Error() != c.want || c.is != nil && !errors.Is(got, c.is) || c.is == nil && errors.Is(got, plan.ErrUnavailable) {
				t.Errorf("got\n%v\nwant %v:\n%s", got, c.is, c.want)
			}
		})
	}
	if wire.Translate(nil) != nil {
		t.Error("no error is translated into one")
	}
}

// A server that goes while it is used is found out by a connection, not by looking for one.
func TestAServerThatGoesIsNamed(t *testing.T) {
	uri, _ := database(t)
	hosts := options.Client().ApplyURI(uri).Hosts
	var gone atomic.Bool
	proxy := serve(t, func(c net.Conn) {
		defer c.Close()
		to, err := net.Dial("tcp", hosts[0])
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(c, to) }()
		for b := make([]byte, 1<<16); ; {
			n, err := c.Read(b)
			if err != nil || gone.Load() { // who asks now gets no answer; the driver's own watch of the server asks once in 10 s
				return
			}
			_, _ = to.Write(b[:n])
		}
	})
	s, err := Open(t.Context(), strings.Replace(uri, strings.Join(hosts, ","), proxy, 1)+"?directConnection=true&retryReads=false", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	gone.Store(true)
	_, err = s.Queues(t.Context())
	want := "MongoDB cannot be reached at " + proxy + " (connection closed by the server); check the port, and that tls in the URI is as the server has it"
	if !errors.Is(err, plan.ErrUnavailable) || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
