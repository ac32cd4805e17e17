package v1_test

import (
	"os"
	"testing"

	"github.com/seed-1177d267/sluice/internal/mongotest"
)

func TestMain(m *testing.M) { os.Exit(mongotest.Run(m)) }
