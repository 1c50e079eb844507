package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// dump writes env, in the order given, as one line of JSON. A string that is not
// UTF-8 is an error: JSON could only carry it altered.
func dump(env []string) ([]byte, error) {
	if env == nil {
		env = []string{}
	}
	for _, entry := range env {
		if !utf8.ValidString(entry) {
			name, _, _ := strings.Cut(entry, "=")
			return nil, fmt.Errorf("the variable %q is not UTF-8", name)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a person reads it too: & stays &
	err := encoder.Encode(struct {
		Env []string `json:"env"`
	}{env})
	return out.Bytes(), err
}
