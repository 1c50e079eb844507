//go:build podenv_tree

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// document is one file of api/openapi-spec.
type document struct {
	name string // relative to api/openapi-spec
	data []byte
	root map[string]any
}

func readSpecs(dir string) ([]document, error) {
	files, err := filepath.Glob(filepath.Join(dir, "v3", "*.json"))
	if err != nil {
		return nil, err
	}
	var docs []document
	for _, file := range append(files, filepath.Join(dir, "swagger.json")) {
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		doc := document{name: name, data: data}
		if err := decode(data, &doc.root); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// schemas is the part of the document that holds schemas by name, and the key of the
// document that it is under; nil if the document has none.
func (d document) schemas() (key string, schemas map[string]any) {
	if v2, ok := d.root["definitions"].(map[string]any); ok {
		return "definitions", v2
	}
	components, _ := d.root["components"].(map[string]any)
	schemas, _ = components["schemas"].(map[string]any)
	return "components", schemas
}

// update puts the schemas that the document's paths reach in the place of those that
// it has.
func (d document) update(builders map[string]schemaBuilder) ([]byte, error) {
	key, schemas := d.schemas()
	if schemas == nil {
		return d.data, nil
	}
	fresh, err := buildFresh(builders[key], schemas)
	if err != nil {
		return nil, err
	}
	clear(schemas)
	for name := range reach(d.root, fresh) {
		schemas[name] = fresh[name]
	}
	return encode(d.root)
}

// buildFresh makes the schemas that old names, and those that they need.
func buildFresh(builder schemaBuilder, old map[string]any) (map[string]any, error) {
	var types []string
	for _, t := range builder.types() {
		if _, ok := old[friendlyName(t)]; ok {
			types = append(types, t)
		}
	}
	built, err := builder.build(types)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(built)
	if err != nil {
		return nil, err
	}
	fresh := map[string]any{}
	return fresh, decode(data, &fresh)
}

// reach names the schemas that root refers to, directly or through other schemas.
func reach(root any, schemas map[string]any) map[string]bool {
	reached := map[string]bool{}
	next := references(root)
	for len(next) > 0 {
		found := map[string]bool{}
		for name := range next {
			if schema, ok := schemas[name]; ok && !reached[name] {
				reached[name] = true
				maps.Copy(found, references(schema))
			}
		}
		next = found
	}
	return reached
}

// references names the schemas in the $ref fields of node.
func references(node any) map[string]bool {
	found := map[string]bool{}
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			maps.Copy(found, references(child))
		}
	case map[string]any:
		for key, child := range node {
			if ref, ok := child.(string); ok && key == "$ref" {
				found[ref[strings.LastIndex(ref, "/")+1:]] = true
				continue
			}
			maps.Copy(found, references(child))
		}
	}
	return found
}

func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// encode writes doc as `jq -S .` does.
func encode(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(doc)
	return b.Bytes(), err
}
