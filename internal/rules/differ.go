package rules

import (
	"fmt"
	"reflect"
	"strings"
)

// Differ names the fields in which two structs of the same type differ, as in "Held is 2, not 3". want has
// the right values.
func Differ(is, want any) string {
	var parts []string
	a, b := reflect.ValueOf(is), reflect.ValueOf(want)
	for i := range a.NumField() {
		if x, y := a.Field(i), b.Field(i); !x.Equal(y) {
			parts = append(parts, fmt.Sprintf("%s is %v, not %v", a.Type().Field(i).Name, x, y))
		}
	}
	return strings.Join(parts, ", ")
}
