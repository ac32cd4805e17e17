package closedport

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestNobodyListensUntilThePortIsFree(t *testing.T) {
	address, free := New(t)
	if l, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another listener: %v, %v", l, err)
	}
	if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection: %v, %v", c, err)
	}
	free()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("after free: %v", err)
	}
	_ = l.Close()
}
