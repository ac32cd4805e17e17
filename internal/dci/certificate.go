package dci

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// A Certificate is what a server proves its name with. It is read again when its file has changed, as by a program that renews it; while
// the new one cannot be used, the old one goes on to be.
type Certificate struct {
	cert, key string // paths

	mu     sync.Mutex
	read   *tls.Certificate
	when   time.Time // the file was changed that was read
	looked time.Time
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

func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if time.Since(c.looked) > time.Second {
				c.looked = time.Now()
				if info, err := os.Stat(c.cert); err == nil && !info.ModTime().Equal(c.when) {
					_ = c.load() // the next handshake tries again
				}
			}
			return c.read, nil
		},
	}
}
