// Package corpus holds pods that the API server accepts and pods that it refuses: one
// file for each rule of a feature, so that several API servers can be asked about
// the very same pods. test/e2e asks the one under test, test/upstream/<minor> those
// of upstream.
package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

//go:embed envfiles
var files embed.FS

// EnvFiles is the corpus of KEP-3721 (env[].valueFrom.fileKeyRef).
const EnvFiles = "envfiles"

// What begins a line of a refused pod's file: one that names the field of an error, and
// those for upstream's API where it decides otherwise, with the field or the reason.
const (
	fieldComment           = "# field: "
	upstreamFieldComment   = "# upstream field: "
	upstreamAcceptsComment = "# upstream accepts: "
)

// Case is one pod, and what the API server is to say when somebody creates it.
type Case struct {
	Name   string   // of the file, without its extension
	Pod    *v1.Pod  // without a namespace
	Fields []string // of the errors, one for each, in no order; none if the pod is accepted

	// UpstreamFields is Fields for an API server whose API of the feature is upstream's.
	UpstreamFields []string
	// UpstreamAccepts says why such an API server accepts a pod that has Fields.
	UpstreamAccepts string
}

// Accepted returns the pods of feature that the API server accepts, by name.
func Accepted(feature string) ([]Case, error) {
	return load(feature, "accepted", func(fields []string) error {
		if len(fields) > 0 {
			return fmt.Errorf("names the field %s: only a refused pod has errors", fields[0])
		}
		return nil
	})
}

// Refused returns the pods of feature that the API server refuses, by name.
func Refused(feature string) ([]Case, error) {
	return load(feature, "refused", func(fields []string) error {
		if len(fields) == 0 {
			return fmt.Errorf("names no field: say where the error is in a line %q", fieldComment+"spec...")
		}
		return nil
	})
}

func load(feature, folder string, check func(fields []string) error) ([]Case, error) {
	names, err := fs.Glob(files, path.Join(feature, folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("corpus %s has no pods that are %s", feature, folder)
	}
	cases := make([]Case, 0, len(names))
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := parse(strings.TrimSuffix(path.Base(name), ".yaml"), data)
		if err == nil {
			err = check(c.Fields)
		}
		if err != nil {
			return nil, fmt.Errorf("corpus file %s: %w", name, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// parse reads one file. A field that the v1 API does not know is an error, so that a
// slip of the pen cannot go unseen.
func parse(name string, data []byte) (Case, error) {
	c := Case{Name: name, Pod: &v1.Pod{}}
	if err := yaml.UnmarshalStrict(data, c.Pod); err != nil {
		return Case{}, err
	}
	if c.Pod.APIVersion != "v1" || c.Pod.Kind != "Pod" {
		return Case{}, fmt.Errorf("is a %s %s, want a v1 Pod", c.Pod.APIVersion, c.Pod.Kind)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if field, found := strings.CutPrefix(line, fieldComment); found {
			c.Fields = append(c.Fields, field)
		}
		if field, found := strings.CutPrefix(line, upstreamFieldComment); found {
			c.UpstreamFields = append(c.UpstreamFields, field)
		}
		if reason, found := strings.CutPrefix(line, upstreamAcceptsComment); found {
			c.UpstreamAccepts = reason
		}
	}
	switch {
	case c.UpstreamAccepts != "" && (len(c.UpstreamFields) > 0 || len(c.Fields) == 0):
		return Case{}, fmt.Errorf("upstream accepts what it or this branch says otherwise of: leave out %q", upstreamAcceptsComment)
	case c.UpstreamAccepts == "" && len(c.UpstreamFields) == 0:
		c.UpstreamFields = c.Fields
	}
	return c, nil
}
