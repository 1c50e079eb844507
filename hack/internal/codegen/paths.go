package codegen

import (
	"path"
	"slices"
	"strings"
)

// generatedNames are the names that generated Go and proto files have, in any folder.
var generatedNames = []string{
	"generated.pb.go",
	"generated.proto",
	"types_swagger_doc_generated.go",
	"zz_generated.conversion.go",
	"zz_generated.deepcopy.go",
	"zz_generated.defaults.go",
	"zz_generated.openapi.go",
	"zz_generated.prerelease-lifecycle.go",
	"zz_generated.validations.go",
}

const (
	applyConfigurations = "staging/src/k8s.io/client-go/applyconfigurations"
	openAPISpecs        = "api/openapi-spec"
	openAPIDefinitions  = "pkg/generated/openapi"
	definitionsName     = "zz_generated.openapi.go"
)

// handWritten are the files of applyConfigurations that no generator writes.
var handWritten = []string{
	applyConfigurations + "/doc.go",
	applyConfigurations + "/meta/v1/unstructured.go",
}

// IsGenerated tells whether file, a path in the tree with forward slashes, is one that
// Generate writes.
func IsGenerated(file string) bool {
	dir, name := path.Split(file)
	dir = strings.TrimSuffix(dir, "/")
	switch {
	case slices.Contains(generatedNames, name):
		return !isForeign(file)
	case dir == openAPISpecs:
		return name == "swagger.json"
	case dir == openAPISpecs+"/v3":
		return path.Ext(name) == ".json"
	case strings.HasPrefix(file, applyConfigurations+"/"):
		return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !slices.Contains(handWritten, file)
	}
	for _, f := range fixtureSets {
		if dir == f.dir+"/testdata/HEAD" {
			return slices.Contains([]string{".json", ".pb", ".yaml"}, path.Ext(name))
		}
	}
	return false
}

// Outputs lists git pathspecs that cover all files that Generate may write. They cover a
// few others too: IsGenerated decides.
func Outputs() []string {
	var specs []string
	for _, name := range generatedNames {
		specs = append(specs, ":(glob)**/"+name)
	}
	specs = append(specs, applyConfigurations, openAPISpecs)
	for _, f := range fixtureSets {
		specs = append(specs, f.dir+"/testdata/HEAD")
	}
	return specs
}

// isForeign tells whether file belongs to test data and examples, which have generators
// of their own.
func isForeign(file string) bool {
	for dir := range strings.SplitSeq(path.Dir(file), "/") {
		if dir == "testdata" || dir == "_codegenignore" || dir == "vendor" || dir == "_output" {
			return true
		}
	}
	return strings.HasPrefix(file, "staging/src/k8s.io/code-generator/")
}

// isSource tells whether file is Go that a generator reads: neither a test nor generated.
func isSource(file string) bool {
	return path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !IsGenerated(file) && !isForeign(file)
}
