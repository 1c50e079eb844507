//go:build podenv_tree

// Command openapispec brings the schemas in api/openapi-spec up to date with
// pkg/generated/openapi, as an API server would publish them. It is compiled in the tree
// that it works on, and uses that tree's schema builders: with the build tag podenv_tree,
// which keeps it out of everything else.
//
// The paths and everything else in the files stay: they follow from the resources that
// are served, not from the fields of their types. A schema belongs to a file if the
// file's paths reach it.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/openapi"
	generated "k8s.io/kubernetes/pkg/generated/openapi"
)

func main() {
	specs := flag.String("specs", "", "folder of the specs as they are: swagger.json and v3/*.json")
	out := flag.String("out", "", "folder that the specs as they should be are written to")
	gates := flag.String("feature-gates", "", "feature gates of the API server that publishes the specs")
	flag.Parse()
	if err := run(*specs, *out, *gates); err != nil {
		fmt.Fprintln(os.Stderr, "openapispec:", err)
		os.Exit(1)
	}
}

func run(specs, out, gates string) error {
	if err := feature.DefaultMutableFeatureGate.Set(gates); err != nil {
		return err
	}
	docs, err := readSpecs(specs)
	if err != nil {
		return err
	}
	kinds := kindsOf(docs)
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generated.GetOpenAPIDefinitions)
	swagger, components := newV2(definitions), newV3(definitions)
	for _, doc := range docs {
		// From v1.37 on a document of one group says which kinds of that group a schema is of.
		kinds := maps.Clone(kinds)
		maps.Copy(kinds, kindsOf([]document{doc}))
		swagger.kinds, components.kinds = kinds, kinds
		updated, err := doc.update(map[string]schemaBuilder{"definitions": swagger, "components": components})
		if err != nil {
			return fmt.Errorf("%s: %w", doc.name, err)
		}
		target := filepath.Join(out, doc.name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, updated, 0o644); err != nil {
			return err
		}
	}
	return nil
}
