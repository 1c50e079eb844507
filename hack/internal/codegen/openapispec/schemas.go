//go:build podenv_tree

package main

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// schemaBuilder makes the schemas of one version of OpenAPI.
type schemaBuilder interface {
	// types are the Go types that have a schema.
	types() []string
	// build makes the schemas of types, and of those that they need, by name.
	build(types []string) (any, error)
}

// definitions are those of pkg/generated/openapi, by Go type.
type definitions map[string]common.OpenAPIDefinition

func (d definitions) types() []string { return slices.Sorted(maps.Keys(d)) }

func (d definitions) get(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return d }

// definitionsAt calls get with references to schemas under prefix.
func definitionsAt(prefix string, get common.GetOpenAPIDefinitions) definitions {
	return get(func(name string) spec.Ref {
		return spec.MustCreateRef(prefix + common.EscapeJsonPointer(friendlyName(name)))
	})
}

type v2 struct {
	definitions
	kinds kinds
}

func newV2(get common.GetOpenAPIDefinitions) v2 {
	return v2{definitions: definitionsAt("#/definitions/", get)}
}

func (v v2) build(types []string) (any, error) {
	config := &common.Config{GetDefinitions: v.get, GetDefinitionName: v.kinds.definitionName}
	swagger, err := builder.BuildOpenAPIDefinitionsForResources(config, types...)
	if err != nil {
		return nil, err
	}
	// The API server publishes no defaults in v2.
	return handler.PruneDefaults(swagger.Definitions), nil
}

type v3 struct {
	definitions
	kinds kinds
}

func newV3(get common.GetOpenAPIDefinitions) v3 {
	return v3{definitions: definitionsAt("#/components/schemas/", get)}
}

func (v v3) build(types []string) (any, error) {
	config := &common.OpenAPIV3Config{GetDefinitions: v.get, GetDefinitionName: v.kinds.definitionName}
	return builder3.BuildOpenAPIDefinitionsForResources(config, types...)
}

// gvk is the extension that says which kinds a schema is of.
const gvk = "x-kubernetes-group-version-kind"

// kinds are the values of the gvk extension, by schema. The API server takes them from
// its schemes; here they stay what they were, for no kind comes or goes.
type kinds map[string]any

func kindsOf(docs []document) kinds {
	found := kinds{}
	for _, doc := range docs {
		_, schemas := doc.schemas()
		for name, schema := range schemas {
			fields, _ := schema.(map[string]any)
			if value, ok := fields[gvk]; ok {
				found[name] = value
			}
		}
	}
	return found
}

// definitionName names a schema as the API server does, with its extensions.
func (k kinds) definitionName(goType string) (string, spec.Extensions) {
	name := friendlyName(goType)
	if value, ok := k[name]; ok {
		return name, spec.Extensions{gvk: value}
	}
	return name, nil
}

// friendlyName is the schema name of a Go type: k8s.io/api/core/v1.Pod is
// io.k8s.api.core.v1.Pod. A type may have a method that returns the schema name, which is
// then what the definitions have.
func friendlyName(goType string) string {
	host, rest, isType := strings.Cut(goType, "/")
	if !isType {
		return goType
	}
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(rest, "/", ".")
}
