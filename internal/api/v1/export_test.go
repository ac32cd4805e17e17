package v1

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Document is the OpenAPI document as it is kept, for tests that look into it.
func (a *API) Document() *huma.OpenAPI { return a.api.OpenAPI() }

// ReadStatesEachTime has the states of a plan read for each graph, until the returned function is called.
func ReadStatesEachTime() (restore func()) {
	was := statesSmall
	statesSmall = time.Hour
	return func() { statesSmall = was }
}

// SortAtMost has so many tasks at most put in order after they were read, until the returned function is called.
func SortAtMost(n int) (restore func()) {
	was := mostSorted
	mostSorted = n
	return func() { mostSorted = was }
}

// Sketched is sketched.
var Sketched = sketched
