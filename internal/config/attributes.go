package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An attribute is one of Perl's MongoDB::MongoClient.
type attribute struct {
	option  string                                                        // of a MongoDB URI, by which it has its effect
	read    func(r *reader, name string, n *node) (value string, ok bool) // what the option says; not ok: nothing
	secret  bool
	instead string // why one that is known has no effect, where nothing is lost by it
	lost    string // why, where something is
}

// attributes are those that have an option, are read otherwise (as ssl is), or differ on purpose. The others have no effect.
var attributes map[string]*attribute

func init() { // the readers of some ask for the table
	const concern = "Sluice always waits for a majority and its journal"
	const primary = "Sluice always reads from the primary"
	const none = "Go's driver has nothing like it"
	attributes = map[string]*attribute{
		"app_name":                    {instead: "Sluice names itself to the server"},
		"auth_mechanism":              {option: "authMechanism", read: readMechanism},
		"auth_mechanism_properties":   {option: "authMechanismProperties", read: readProperties, secret: true},
		"compressors":                 {option: "compressors", read: readCompressors},
		"connect_timeout_ms":          {option: "connectTimeoutMS", read: readMilliseconds},
		"connect_type":                {option: "directConnection", read: readConnectType},
		"db_name":                     {read: readWord},
		"heartbeat_frequency_ms":      {option: "heartbeatFrequencyMS", read: readMilliseconds},
		"j":                           {instead: concern},
		"local_threshold_ms":          {option: "localThresholdMS", read: readMilliseconds},
		"max_staleness_seconds":       {instead: primary},
		"password":                    {read: readWord, secret: true},
		"port":                        {read: readCount},
		"read_concern_level":          {instead: "Sluice chooses it"},
		"read_pref_mode":              {instead: primary},
		"read_pref_tag_sets":          {instead: primary},
		"replica_set_name":            {option: "replicaSet", read: readWord},
		"retry_reads":                 {option: "retryReads", read: readBool},
		"retry_writes":                {option: "retryWrites", read: readBool},
		"server_selection_timeout_ms": {option: "serverSelectionTimeoutMS", read: readMilliseconds},
		"ssl":                         {}, // see readTLS
		"username":                    {read: readWord},
		"w":                           {instead: concern},
		"wtimeout":                    {instead: concern},
		"zlib_compression_level":      {option: "zlibCompressionLevel", read: readCount},
	}
	attributes["host"] = &attribute{lost: "mongohost is what counts"}
	for _, name := range []string{
		"auto_connect", "auto_reconnect", "bson_codec", "dt_type", "find_master", "inflate_dbrefs", "inflate_regexps", "max_time_ms", "query_timeout",
		"sasl", "sasl_mechanism", "server_selection_try_once", "socket_check_interval_ms", "socket_timeout_ms", "timeout",
	} {
		attributes[name] = &attribute{lost: none}
	}
}

func (r *reader) readAttributes(n *node) {
	if n == nil || !r.is("attributes", n, object, `{"ssl": 1}`) {
		r.list("attributes", n, "{}", "connects without TLS, unless mongohost says otherwise")
		return
	}
	values := map[string]string{}
	given := r.members(" of attributes that Sluice knows,", n, slices.Sorted(maps.Keys(attributes)))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		a, v, key := attributes[name], given[name], "attributes."+name
		switch {
		case name == "ssl":
			r.readTLS(v)
			continue
		case a.instead != "":
			r.notef(v.from, "%s has no effect: %s", key, a.instead)
			r.list(key, v, described(v), "no effect: "+a.instead)
			continue
		case a.lost != "":
			r.warnf(v.from, "%s has no effect: %s", key, a.lost)
			r.list(key, v, described(v), "no effect: "+a.lost)
			continue
		}
		value, ok := a.read(r, key, v)
		effect := "as in Perl"
		if ok && a.option != "" {
			r.options = append(r.options, option{a.option, value})
			effect = a.option + " of the MongoDB URI"
		}
		if values[name] = value; a.secret {
			value = stars
		}
		r.list(key, v, value, effect)
	}
	r.connection.username, r.connection.password = values["username"], values["password"]
	r.connection.authSource, r.connection.mechanism = values["db_name"], values["auth_mechanism"]
	if port := values["port"]; port != "" {
		r.connection.port = port
	}
}

// readTLS reads the three forms of ssl.
func (r *reader) readTLS(n *node) {
	const key = "attributes.ssl"
	set := func(name, value string) { r.options = append(r.options, option{name, value}) }
	if n.kind != object {
		on, ok := truth(n)
		if !ok {
			r.failf(n.from, `%s is %s; it has to be 1, {"SSL_ca_file": "…"} or {"SSL_verify_mode": 0}`, key, described(n))
			return
		}
		set("tls", strconv.FormatBool(on))
		effect := "connects without TLS"
		if on {
			effect = "TLS, and the server's certificate is checked"
		}
		r.list(key, n, strconv.FormatBool(on), effect)
		return
	}
	set("tls", "true")
	if len(n.members) == 0 {
		r.list(key, n, "{}", "TLS, and the server's certificate is checked")
	}
	given := r.members(" of ssl that Sluice knows,", n, []string{"SSL_ca_file", "SSL_verify_mode", "SSL_cert_file", "SSL_key_file"})
	mode, ca := given["SSL_verify_mode"], given["SSL_ca_file"]
	blind := false
	if mode != nil {
		checks, ok := truth(mode)
		if !ok {
			r.failf(mode.from, "%s.SSL_verify_mode is %s; it has to be 0 or 1", key, described(mode))
		}
		effect := "the server's certificate is checked"
		if blind = ok && !checks; blind {
			set("tlsInsecure", "true")
			effect = "TLS, and any certificate of the server is taken"
		}
		r.list(key+".SSL_verify_mode", mode, mode.word, effect)
	}
	file := func(name, option, effect string) {
		v := given[name]
		if v == nil || !r.is(key+"."+name, v, text, `"/etc/ssl/mongodb.pem"`) {
			return
		}
		if v.word == "" {
			r.failf(v.from, "%s.%s is empty; write a path, or leave it out", key, name)
		}
		if option != "" {
			set(option, v.word)
		}
		r.list(key+"."+name, v, v.word, effect)
	}
	if blind && ca != nil {
		r.notef(ca.from, "SSL_verify_mode is 0, so the server's certificate is not checked, and SSL_ca_file has no effect")
		file("SSL_ca_file", "", "no effect, since SSL_verify_mode is 0")
	} else {
		file("SSL_ca_file", "tlsCAFile", "TLS, and the server's certificate is checked against this one")
	}
	cert, secret := given["SSL_cert_file"], given["SSL_key_file"]
	if (cert == nil) != (secret == nil) {
		r.failf(n.from, "%s has one of SSL_cert_file and SSL_key_file; they are needed together", key)
	}
	file("SSL_cert_file", "tlsCertificateFile", "who Sluice is to the server")
	file("SSL_key_file", "tlsPrivateKeyFile", "who Sluice is to the server")
}

func readWord(r *reader, name string, n *node) (string, bool) {
	return n.word, r.is(name, n, text, `"…"`) && n.word != ""
}

func readBool(r *reader, name string, n *node) (string, bool) {
	return strconv.FormatBool(r.bool(name, n)), true
}

// number reads a whole number, which Perl also takes from a text.
func (r *reader) number(name string, n *node) (int, bool) {
	i, err := strconv.ParseInt(n.word, 10, 32)
	if err != nil || n.kind != number && n.kind != text {
		r.failf(n.from, "%s is %s; it has to be a whole number", name, described(n))
		return 0, false
	}
	return int(i), true
}

func readCount(r *reader, name string, n *node) (string, bool) {
	i, ok := r.number(name, n)
	if ok && i < 0 {
		r.failf(n.from, "%s cannot be less than 0", name)
	}
	return strconv.Itoa(i), ok
}

// readMilliseconds reads a time. Less than 0 is "for ever" in Perl, for which Go's driver has 0.
func readMilliseconds(r *reader, name string, n *node) (string, bool) {
	i, ok := r.number(name, n)
	return strconv.Itoa(max(i, 0)), ok
}

// oneOf reads one of the known words. It returns "" for what is no text.
func (r *reader) oneOf(name string, n *node, example string, known ...string) string {
	if !r.is(name, n, text, example) {
		return ""
	}
	if !slices.Contains(known, n.word) {
		r.failf(n.from, "%s is %q; it is one of %s", name, n.word, strings.Join(known, ", "))
	}
	return n.word
}

func readConnectType(r *reader, name string, n *node) (string, bool) {
	direct := r.oneOf(name, n, `"direct"`, "none", "direct", "replicaSet") == "direct"
	return strconv.FormatBool(direct), direct // the others are what the driver finds out
}

func readMechanism(r *reader, name string, n *node) (string, bool) {
	word := r.oneOf(name, n, `"SCRAM-SHA-256"`, "SCRAM-SHA-256", "SCRAM-SHA-1", "MONGODB-X509", "MONGODB-AWS", "GSSAPI", "PLAIN", "DEFAULT", mechanismNone)
	return word, word != "" && word != "DEFAULT" && word != mechanismNone
}

func readProperties(r *reader, name string, n *node) (string, bool) {
	if !r.is(name, n, object, `{"SERVICE_NAME": "mongodb"}`) {
		return "", false
	}
	var pairs []string
	for i := range n.members {
		m := &n.members[i]
		if !r.is(fmt.Sprintf("%s.%s", name, m.name), &m.value, text, `"…"`) {
			continue
		}
		pairs = append(pairs, m.name+":"+m.value.word)
	}
	return strings.Join(pairs, ","), len(pairs) > 0
}

func readCompressors(r *reader, name string, n *node) (string, bool) {
	known := []string{"snappy", "zlib", "zstd"}
	words := r.texts(name, n, `"zlib"`, func(word string) string {
		if !slices.Contains(known, word) {
			return "which is none of " + strings.Join(known, ", ")
		}
		return ""
	})
	return strings.Join(words, ","), len(words) > 0
}
