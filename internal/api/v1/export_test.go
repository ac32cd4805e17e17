package v1

import "github.com/danielgtaylor/huma/v2"

// Document is the OpenAPI document as it is kept, for tests that look into it.
func (a *API) Document() *huma.OpenAPI { return a.api.OpenAPI() }
