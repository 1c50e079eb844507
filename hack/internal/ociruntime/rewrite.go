package ociruntime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/renameio/v2"
)

// object is a JSON object whose members stay as they are written: what this
// package does not know must reach runc unchanged.
type object map[string]json.RawMessage

// BoundConfig takes every capability that allowed lacks out of all capability sets
// of a bundle's config.json (OCI runtime specification, "process.capabilities").
// Without such a capability it returns data itself.
func BoundConfig(data []byte, allowed Set) ([]byte, error) {
	var config object
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	process, ok := config["process"]
	if !ok {
		return data, nil
	}
	bounded, err := BoundProcess(process, allowed)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	if bytes.Equal(bounded, process) {
		return data, nil
	}
	config["process"] = bounded
	return encode(config)
}

// BoundProcess is BoundConfig for a process.json, which is the object "process" of
// a config.json.
func BoundProcess(data []byte, allowed Set) ([]byte, error) {
	var process, sets object
	if err := json.Unmarshal(data, &process); err != nil {
		return nil, err
	}
	capabilities, ok := process["capabilities"]
	if !ok {
		return data, nil
	}
	if err := json.Unmarshal(capabilities, &sets); err != nil {
		return nil, fmt.Errorf("capabilities: %w", err)
	}
	changed := false
	for kind, list := range sets {
		bounded, err := boundList(list, allowed)
		if err != nil {
			return nil, fmt.Errorf("capabilities: %s: %w", kind, err)
		}
		if bounded != nil {
			sets[kind], changed = bounded, true
		}
	}
	if !changed {
		return data, nil
	}
	var err error
	if process["capabilities"], err = encode(sets); err != nil {
		return nil, err
	}
	return encode(process)
}

// boundList returns the list without what allowed lacks, or nil where it lacks nothing.
func boundList(list json.RawMessage, allowed Set) (json.RawMessage, error) {
	var all []string
	if err := json.Unmarshal(list, &all); err != nil {
		return nil, err
	}
	kept := make([]string, 0, len(all))
	for _, name := range all {
		if allowed.Has(name) {
			kept = append(kept, name)
		}
	}
	if len(kept) == len(all) {
		return nil, nil
	}
	return encode(kept)
}

// encode is json.Marshal, but leaves <, > and & in members as they were written.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// rewrite replaces the file at path with what bound makes of it. Its mode stays:
// it holds the environment of a container.
func rewrite(path string, allowed Set, bound func([]byte, Set) ([]byte, error)) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bounded, err := bound(data, allowed)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(bounded, data) {
		return nil
	}
	return renameio.WriteFile(path, bounded, 0o600, renameio.WithExistingPermissions())
}
