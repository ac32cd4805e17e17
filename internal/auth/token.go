package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
)

// TokenPrefix begins every token, so that people and programs that look for secrets in code and logs know one when they see it.
const TokenPrefix = "sluice_"

const tokenBytes = 32

// NewToken returns a new token, which is shown once, and the hash by which a file knows it. A token is 256 random bits: nobody guesses it, so
// its hash needs neither salt nor work.
func NewToken() (token, hash string) {
	token = TokenPrefix + randomText()
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}

// randomText returns 256 random bits as letters, digits, - and _.
func randomText() string {
	secret := make([]byte, tokenBytes)
	rand.Read(secret) // never fails
	return base64.RawURLEncoding.EncodeToString(secret)
}

// tokenLength is the length of every token. Text of another form is no token, even if the file has
// its hash: a token that a person made up can be guessed.
var tokenLength = len(TokenPrefix) + base64.RawURLEncoding.EncodedLen(tokenBytes)

// token returns the token whose secret is presented, if it holds at that time. It compares with each of them in constant time.
func (a *Access) token(secret string, now time.Time) *Token {
	if len(secret) != tokenLength || !strings.HasPrefix(secret, TokenPrefix) {
		return nil
	}
	sum := sha256.Sum256([]byte(secret))
	var found *Token
	for i := range a.Tokens {
		if subtle.ConstantTimeCompare(sum[:], a.Tokens[i].sum) == 1 {
			found = &a.Tokens[i]
		}
	}
	if found == nil || !found.Valid(now) {
		return nil
	}
	return found
}

// Valid reports whether the token's time is not over.
func (t *Token) Valid(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }
