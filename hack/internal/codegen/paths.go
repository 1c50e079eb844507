package codegen

import (
	"path"
	"slices"
	"strings"
)

// generatedNames are the names of generated Go and proto files in any folder.
var generatedNames = []string{
	"generated.pb.go",
	"generated.proto",
	"types_swagger_doc_generated.go",
	"zz_generated.conversion.go",
	"zz_generated.deepcopy.go",
	"zz_generated.defaults.go",
	modelNamesName,
	"zz_generated.openapi.go",
	"zz_generated.prerelease-lifecycle.go",
	"zz_generated.validations.go",
}

const (
	stagingRoot         = "staging/src/"
	clientGo            = stagingRoot + "k8s.io/client-go"
	applyConfigurations = clientGo + "/applyconfigurations"
	openAPISpecs        = "api/openapi-spec"
	openAPIDefinitions  = "pkg/generated/openapi"
	definitionsName     = "zz_generated.openapi.go"
	modelNamesName      = "zz_generated.model_name.go"
)

// clientFolders are the folders of client-go that generators write.
var clientFolders = []string{
	applyConfigurations,
	clientGo + "/kubernetes",
	clientGo + "/listers",
	clientGo + "/informers",
}

// handWritten are the files of clientFolders that no generator writes. Files named
// X_expansion.go are hand-written too, except generated_expansion.go.
var handWritten = []string{
	applyConfigurations + "/doc.go",
	applyConfigurations + "/meta/v1/unstructured.go",
	clientGo + "/informers/doc.go",
	clientGo + "/kubernetes/doc.go",
	clientGo + "/kubernetes/import.go",
	clientGo + "/listers/doc.go",
	clientGo + "/listers/generic_helpers.go",
}

// IsGenerated reports whether Generate writes file, a path in the tree with forward slashes.
func IsGenerated(file string) bool {
	dir, name := path.Split(file)
	dir = strings.TrimSuffix(dir, "/")
	switch {
	case slices.Contains(generatedNames, name):
		return !isExcluded(file)
	case dir == openAPISpecs:
		return name == "swagger.json"
	case dir == openAPISpecs+"/v3":
		return path.Ext(name) == ".json"
	case path.Ext(name) == ".go" && slices.ContainsFunc(clientFolders, func(folder string) bool { return strings.HasPrefix(file, folder+"/") }):
		byHand := strings.HasSuffix(name, "_test.go") || slices.Contains(handWritten, file) ||
			strings.HasSuffix(name, "_expansion.go") && name != "generated_expansion.go"
		return !byHand
	}
	return slices.Contains([]string{".json", ".pb", ".yaml"}, path.Ext(name)) &&
		slices.ContainsFunc(fixtureSets, func(f fixtureSet) bool { return dir == f.dir+"/testdata/HEAD" })
}

// isExcluded reports whether file is test data or an example, which other generators write.
func isExcluded(file string) bool {
	for dir := range strings.SplitSeq(path.Dir(file), "/") {
		if dir == "testdata" || dir == "_codegenignore" || dir == "vendor" || dir == "_output" {
			return true
		}
	}
	return strings.HasPrefix(file, "staging/src/k8s.io/code-generator/")
}

// isSource reports whether file is Go that a generator reads: neither a test nor generated.
func isSource(file string) bool {
	return path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !IsGenerated(file) && !isExcluded(file)
}
