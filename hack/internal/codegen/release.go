package codegen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// kubernetes says how the generators of one Kubernetes minor are run. What differs
// between minors is data here; the order of things is in pipeline.go.
type minor struct {
	// tools are the packages of the commands, built in the tree.
	tools []string
	// toolsVersion is the version of golang.org/x/tools to build them with, where that of the
	// release does not compile with Go 1.25 and later, or where the release's go.sum is not
	// enough to build goimports; empty for what the release has.
	toolsVersion string
	// gopath says that the generators' library is gengo before v2, which knows no modules:
	// they look for packages in a GOPATH, and all that they are given is flags.
	gopath bool
	// packageGenerators write one file per package.
	packageGenerators []packageGenerator
	// unpluralized are the kinds, beside Endpoints, whose plural is their own name:
	// PLURAL_EXCEPTIONS of hack/update-codegen.sh.
	unpluralized []string
	// clientFlags are those of client-gen that not every minor has.
	clientFlags []string
	// modelNames says that openapi-gen writes modelNamesName into packages that have the
	// modelPackage marker, and takes those packages too.
	modelNames bool
	// specGates are the feature gates of the API server that publishes
	// api/openapi-spec.
	specGates string
}

// packageGenerator is a command that is given packages and writes file into each.
type packageGenerator struct {
	tool   string
	file   string
	flags  []string
	marker string // asks for it
	// methods says that it writes methods of the types, which must be there when the
	// types are compiled.
	methods bool
	// allFlags are given all packages that have the marker, reached or not.
	allFlags []string
	// allPackages says that it runs for all packages that have the marker as soon as one
	// is reached.
	allPackages bool
}

// fixtureSet is a package whose TestCompatibility keeps the serialized form of all types
// below pkg in dir/testdata/HEAD.
type fixtureSet struct{ pkg, dir string }

var fixtureSets = []fixtureSet{
	{pkg: "k8s.io/api", dir: "staging/src/k8s.io/api"},
	{pkg: "k8s.io/apiextensions-apiserver/pkg/apis", dir: "staging/src/k8s.io/apiextensions-apiserver/pkg/apis"},
}

func isFixtureTest(file string) bool {
	return slices.ContainsFunc(fixtureSets, func(f fixtureSet) bool {
		name, ok := strings.CutPrefix(file, f.dir+"/")
		return ok && !strings.Contains(name, "/")
	})
}

// minors are the minors whose generators are known: what each one's hack/update-codegen.sh,
// hack/_update-generated-protobuf-dockerized.sh and hack/update-openapi-spec.sh run.
var minors = map[string]*minor{
	"v1.29": {
		tools:             oldTools,
		toolsVersion:      "v0.26.0",
		gopath:            true,
		packageGenerators: withAllFlags(packageGenerators, map[string][]string{"conversion-gen": {"--extra-dirs"}}),
		specGates:         "AllAlpha=true,OpenAPIEnums=false",
	},
	"v1.30": {
		tools:             tools(),
		toolsVersion:      "v0.26.0",
		packageGenerators: packageGenerators,
		unpluralized:      []string{"ResourceClaimParameters", "ResourceClassParameters"},
		specGates:         "AllAlpha=true,OpenAPIEnums=false,ConsistentListFromCache=false",
	},
	"v1.31": {
		tools:             tools(),
		toolsVersion:      "v0.26.0",
		packageGenerators: packageGenerators,
		specGates:         "AllAlpha=true,OpenAPIEnums=false,ConsistentListFromCache=false",
	},
	"v1.32": {
		tools:             tools(),
		packageGenerators: packageGenerators,
		clientFlags:       []string{"--prefers-protobuf"},
		specGates:         "AllAlpha=true,AllBeta=true,OpenAPIEnums=false,ConsistentListFromCache=false",
	},
	"v1.33": v133,
	"v1.34": v133,
	"v1.35": withModelNames(v133.packageGenerators),
	"v1.36": withModelNames(unboundedGenerators()),
	"v1.37": withModelNames(lintedGenerators()),
}

// v133 is v1.33, and v1.34, whose scripts run the same.
var v133 = &minor{
	tools:             tools("k8s.io/code-generator/cmd/validation-gen"),
	packageGenerators: append(slices.Clone(packageGenerators), validationGen),
	clientFlags:       []string{"--prefers-protobuf"},
	specGates:         "AllAlpha=true,AllBeta=true,OpenAPIEnums=false",
}

// withModelNames is a minor from v1.35 on: it runs what v1.33 does, and openapi-gen names models.
func withModelNames(generators []packageGenerator) *minor {
	m := *v133
	m.toolsVersion, m.modelNames, m.packageGenerators = "v0.47.0", true, generators
	return &m
}

// tools are the commands that every minor has, and more.
func tools(more ...string) []string {
	return append([]string{
		"golang.org/x/tools/cmd/goimports",
		"k8s.io/code-generator/cmd/applyconfiguration-gen",
		"k8s.io/code-generator/cmd/client-gen",
		"k8s.io/code-generator/cmd/conversion-gen",
		"k8s.io/code-generator/cmd/deepcopy-gen",
		"k8s.io/code-generator/cmd/defaulter-gen",
		"k8s.io/code-generator/cmd/go-to-protobuf",
		"k8s.io/code-generator/cmd/go-to-protobuf/protoc-gen-gogo",
		"k8s.io/code-generator/cmd/informer-gen",
		"k8s.io/code-generator/cmd/lister-gen",
		"k8s.io/code-generator/cmd/prerelease-lifecycle-gen",
		"k8s.io/kube-openapi/cmd/openapi-gen",
		"k8s.io/kubernetes/cmd/genswaggertypedocs",
	}, more...)
}

// oldTools are those of v1.29, where openapi-gen is in another module.
var oldTools = slices.Insert(slices.DeleteFunc(tools(), func(tool string) bool {
	return tool == "k8s.io/kube-openapi/cmd/openapi-gen"
}), 0, "k8s.io/code-generator/cmd/openapi-gen")

// withAllFlags gives the generators, by tool, these allFlags too.
func withAllFlags(generators []packageGenerator, allFlags map[string][]string) []packageGenerator {
	generators = slices.Clone(generators)
	for i, g := range generators {
		generators[i].allFlags = append(slices.Clone(g.allFlags), allFlags[g.tool]...)
	}
	return generators
}

// packageGenerators are those that every minor has.
var packageGenerators = []packageGenerator{
	{
		tool: "deepcopy-gen", marker: "deepcopy-gen", file: "zz_generated.deepcopy.go", methods: true,
		flags: []string{"--bounding-dirs=k8s.io/kubernetes,k8s.io/api"},
	},
	{
		tool: "conversion-gen", marker: "conversion-gen", file: "zz_generated.conversion.go",
		flags: []string{"--extra-peer-dirs=k8s.io/kubernetes/pkg/apis/core,k8s.io/kubernetes/pkg/apis/core/v1,k8s.io/api/core/v1"},
	},
	{
		// The defaults of a type call those of its fields, whose package may not be reached.
		tool: "defaulter-gen", marker: "defaulter-gen", file: "zz_generated.defaults.go", allFlags: []string{"--extra-peer-dirs"},
	},
	{tool: "prerelease-lifecycle-gen", marker: "prerelease-lifecycle-gen", file: "zz_generated.prerelease-lifecycle.go", methods: true},
}

// validationGen came with v1.33.
var validationGen = packageGenerator{
	tool: "validation-gen", marker: "validation-gen", file: "zz_generated.validations.go",
	flags: []string{"--readonly-pkg=" + strings.Join([]string{
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/apimachinery/pkg/runtime",
		"k8s.io/apimachinery/pkg/types",
		"k8s.io/apimachinery/pkg/util/intstr",
		"time",
	}, ",")},
}

// unboundedGenerators are those of v1.36: deepcopy-gen needs no bounds.
func unboundedGenerators() []packageGenerator {
	generators := slices.Clone(v133.packageGenerators)
	for i := range generators {
		if generators[i].tool == "deepcopy-gen" {
			generators[i].flags = nil
		}
	}
	return generators
}

// lintedGenerators are those of v1.37: they refuse tags that none of them knows, and
// validation-gen compares the tags of all packages with the functions that it finds. The
// tests that validation-gen writes into test/declarative_validation are not made: they count
// which rules upstream's tests reach.
func lintedGenerators() []packageGenerator {
	generators := unboundedGenerators()
	for i := range generators {
		g := &generators[i]
		if g.tool == "validation-gen" {
			g.allPackages = true
			g.flags = []string{strings.Replace(g.flags[0], "k8s.io/apimachinery/pkg/apis/meta/v1,", "", 1)}
		}
		g.flags = append(slices.Clone(g.flags), "--lint-rules=known-tags-only,require-explicit-disablement")
	}
	return generators
}

// apimachineryPackages are the packages that every protobuf definition may refer to, as
// go-to-protobuf's --apimachinery-packages names them.
var apimachineryPackages = []string{
	"+k8s.io/apimachinery/pkg/util/intstr",
	"+k8s.io/apimachinery/pkg/api/resource",
	"+k8s.io/apimachinery/pkg/runtime/schema",
	"+k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/apis/meta/v1beta1",
	"k8s.io/apimachinery/pkg/apis/testapigroup/v1",
}

// minorOf returns the generators of release's minor.
func minorOf(release string) (*minor, error) {
	if m, ok := minors[semver.MajorMinor(release)]; ok {
		return m, nil
	}
	return nil, fmt.Errorf("the generators of %s are %w: say in hack/internal/codegen/release.go how its hack/update-codegen.sh runs them (known: %s)",
		release, ErrUnsupported, strings.Join(slices.Sorted(maps.Keys(minors)), ", "))
}
