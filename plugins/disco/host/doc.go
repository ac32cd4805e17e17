// Package host owns our side of the Disco worker protocol, version 1.1: what a node says to one
// worker that runs one attempt of a task. It knows no store, no plan and no process. A [Session]
// reads messages from one stream, answers on another, and returns how the attempt ended.
//
// The worker begins everything. Each message gets at most one reply, in order, and each reply is one
// write of pure ASCII:
//
//	NAME SP LENGTH SP BODY NL
//
// LENGTH counts bytes, and BODY is JSON. The session judges a message in this order: its frame, its
// JSON, its name, the type of its payload, and then what it says. A wrong frame ends the attempt as
// an error, after the last words of the worker. The next three end it as fatal.
//
// # Memory
//
// A session holds the message that it reads, and copies no part of it but names, numbers and the
// beginning of texts. A message has up to 100 MiB ([MaxMessage]) and a reply up to 24 MiB
// ([MaxReply]), so that a hostile worker costs at most 128 MiB. The session reads nothing while it
// holds a reply back or writes one. So a flood of messages fills the pipe, and the worker waits.
package host
