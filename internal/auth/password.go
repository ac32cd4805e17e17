package auth

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Passwords are hashed by Argon2id (RFC 9106), and not by bcrypt. bcrypt refuses or cuts passwords
// of more than 72 bytes, such as passphrases. It needs only 4 KiB, so that a graphics card tries
// thousands at once. The parameters are the first choice of OWASP's Password Storage Cheat Sheet:
// 19 MiB, 2 passes, 1 lane; about 30 ms on one core. A file may hold hashes with other parameters
// from other programs.
const (
	hashMemory = 19 * 1024 // KiB
	hashPasses = 2
	hashLanes  = 1
	hashSalt   = 16
	hashKey    = 32
)

// The largest parameters of a hash in a file: each attempt to log in spends them.
const (
	mostMemory = 256 * 1024 // KiB
	mostPasses = 16
	mostLanes  = 16
)

// Lengths of a password: the least that is taken when it is set, and the most that is ever hashed.
const (
	LeastPassword = 12   // characters
	MostPassword  = 1024 // bytes
)

// CheckPassword returns why a password cannot be set. Length is the only rule; there is none on its
// characters (NIST SP 800-63B, 3.1.1.2).
func CheckPassword(password string) error {
	switch {
	case !utf8.ValidString(password):
		return errors.New("the password is not UTF-8 text")
	case strings.ContainsFunc(password, unicode.IsControl):
		return errors.New("the password has a control character in it, which nobody can type on a web page")
	case utf8.RuneCountInString(password) < LeastPassword:
		return fmt.Errorf("the password is too short; it takes %d characters or more, as four words make", LeastPassword)
	case len(password) > MostPassword:
		return fmt.Errorf("the password is too long; it takes at most %d bytes", MostPassword)
	}
	return nil
}

// HashPassword returns what a file keeps of a password, with a new salt, in the text form that the Argon2 library has ($argon2id$…).
func HashPassword(password string) string {
	h := passwordHash{memory: hashMemory, passes: hashPasses, lanes: hashLanes, salt: make([]byte, hashSalt)}
	rand.Read(h.salt) // never fails
	h.key = h.derive(password, hashKey)
	return h.String()
}

// A passwordHash is what is kept of a password.
type passwordHash struct {
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
}

func (h passwordHash) derive(password string, size uint32) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, size)
}

// matches reports whether the hash is of that password. It takes as long for a wrong one.
func (h passwordHash) matches(password string) bool {
	return subtle.ConstantTimeCompare(h.derive(password, uint32(len(h.key))), h.key) == 1
}

var hashText = base64.RawStdEncoding.Strict()

func (h passwordHash) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, h.memory, h.passes, h.lanes, hashText.EncodeToString(h.salt), hashText.EncodeToString(h.key))
}

// errHash tells nothing of the text that it is about: somebody may have written a password there.
var errHash = errors.New("the password is not a hash as sluice access user password writes it ($argon2id$v=19$m=…,t=…,p=…$…$…)")

// parsePasswordHash reads what String writes.
func parsePasswordHash(text string) (h passwordHash, err error) {
	part := strings.Split(text, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" || part[2] != "v="+strconv.Itoa(argon2.Version) {
		return h, errHash
	}
	number := strings.Split(part[3], ",")
	if len(number) != 3 {
		return h, errHash
	}
	var n [3]uint64
	for i, key := range []string{"m=", "t=", "p="} {
		digits, ok := strings.CutPrefix(number[i], key)
		if n[i], err = strconv.ParseUint(digits, 10, 32); !ok || err != nil {
			return h, errHash
		}
	}
	salt, wrongSalt := hashText.DecodeString(part[4])
	key, wrongKey := hashText.DecodeString(part[5])
	switch {
	case wrongSalt != nil || wrongKey != nil || len(salt) < 8 || len(salt) > 64 || len(key) < 16 || len(key) > 64:
		return h, errHash
	case n[0] < 8*n[2] || n[0] > mostMemory || n[1] < 1 || n[1] > mostPasses || n[2] < 1 || n[2] > mostLanes:
		return h, fmt.Errorf("the password's hash asks for m=%d, t=%d, p=%d; it may ask for at most m=%d (KiB), t=%d, p=%d, and at least m=8p",
			n[0], n[1], n[2], mostMemory, mostPasses, mostLanes)
	}
	h = passwordHash{memory: uint32(n[0]), passes: uint32(n[1]), lanes: uint8(n[2]), salt: salt, key: key}
	if h.String() != text { // as +1 or 01 would be
		return passwordHash{}, errHash
	}
	return h, nil
}
