package dci

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestACertificateThatIsRenewedIsUsed(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	changed := time.Now().Add(-time.Hour)
	write := func(certText, keyText []byte) {
		t.Helper()
		changed = changed.Add(time.Minute) // two changes may come within the grain of a file system's times
		if err := errors.Join(os.WriteFile(cert, certText, 0o600), os.WriteFile(key, keyText, 0o600), os.Chtimes(cert, changed, changed)); err != nil {
			t.Fatal(err)
		}
	}
	write(selfSigned(t, "one"))
	c, err := LoadCertificate(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	config := c.config(slog.New(slog.NewTextHandler(&log, nil)))
	shown := func() string {
		t.Helper()
		c.looked = time.Time{} // the server checks the files once a second
		got, err := config.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return got.Leaf.Subject.CommonName
	}
	if got := shown(); got != "one" || log.Len() > 0 {
		t.Errorf("it is %q; the log says %q", got, log.String())
	}
	certText, _ := selfSigned(t, "two")
	_, keyText := selfSigned(t, "another")
	write(certText, keyText)
	if first, again := shown(), shown(); first != "one" || again != "one" {
		t.Errorf("while the new one has another's key it is %q, %q", first, again)
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || strings.Count(got, "\n") != 1 {
		t.Errorf("of that the log says %q, want one warning", got)
	}
	write(selfSigned(t, "two"))
	if got := shown(); got != "two" || strings.Count(log.String(), "renewed") != 1 {
		t.Errorf("it is %q; the log says %q", got, log.String())
	}
}

// selfSigned makes a certificate of that name, and its key, in PEM.
func selfSigned(t *testing.T, name string) (certText, keyText []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
