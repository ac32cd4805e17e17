package dci

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A Certificate proves the name of a server. The server reads it again when its file has changed,
// as after a renewal. While the new one cannot be used, the old one stays in use, and the log says
// so.
type Certificate struct {
	cert, key string // paths

	mu     sync.Mutex
	read   *tls.Certificate
	when   time.Time // the file was changed that was read
	looked time.Time
	told   string // what is wrong with the file now, as it was logged
}

// LoadCertificate reads a certificate and its key, in PEM.
func LoadCertificate(cert, key string) (*Certificate, error) {
	c := &Certificate{cert: cert, key: key}
	return c, c.load()
}

func (c *Certificate) load() error {
	info, err := os.Stat(c.cert)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.read, c.when, c.looked = &pair, info.ModTime(), time.Now()
	return nil
}

func (c *Certificate) config(log *slog.Logger) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if time.Since(c.looked) > time.Second {
				c.looked = time.Now()
				c.renew(log)
			}
			return c.read, nil
		},
	}
}

// renew reads the files again if they have changed. It logs a mistake in them once. The next
// handshake tries again, because the key may not have been written yet.
func (c *Certificate) renew(log *slog.Logger) {
	info, err := os.Stat(c.cert)
	if err == nil && info.ModTime().Equal(c.when) {
		return
	}
	if err == nil {
		err = c.load()
	}
	switch {
	case err == nil:
		c.told = ""
		log.Info("the certificate was renewed", "file", c.cert)
	case err.Error() != c.told:
		c.told = err.Error()
		log.Warn("the certificate has changed and cannot be used; the one before it still is", "file", c.cert, "error", err)
	}
}
