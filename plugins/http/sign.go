package http

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// decodeKey reads a secret of Standard Webhooks: base64, which may begin with whsec_.
func decodeKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("the secret is not one of Standard Webhooks: whsec_ and base64")
	}
	return key, nil
}

// sign adds the headers of Standard Webhooks 1.0.0 (standardwebhooks.com): the id of the message,
// which is the same on each try, the time, and a signature with each key.
func sign(h http.Header, keys [][]byte, id string, now time.Time, body []byte) {
	if len(keys) == 0 {
		return
	}
	at := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}
