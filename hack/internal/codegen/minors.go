package codegen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// minor says how the generators of one Kubernetes minor are run. The differences between
// minors are data here. The order of the generators is in pipeline.go.
type minor struct {
	// tools are the packages of the generators, which are built in the tree.
	tools []string
	// toolsVersion is the version of golang.org/x/tools to build them with, if that of the
	// release does not compile with Go 1.25 and later, or if the release's go.sum is not
	// enough to build goimports. It is empty for the version of the release.
	toolsVersion string
	// gopath is set if the generators use gengo before v2, which does not support modules:
	// they look for packages in a GOPATH, and take them as flags.
	gopath bool
	// packageGenerators write one file per package.
	packageGenerators []packageGenerator
	// unpluralized are the kinds, besides Endpoints, whose plural is the kind itself:
	// PLURAL_EXCEPTIONS of hack/update-codegen.sh.
	unpluralized []string
	// clientFlags are flags of client-gen that not every minor has.
	clientFlags []string
	// modelNames is set if openapi-gen also reads packages with the modelPackage marker, and
	// writes modelNamesName into them.
	modelNames bool
	// specGates are the feature gates of the API server that publishes api/openapi-spec and
	// api/discovery.
	specGates string
}

// packageGenerator is a command that writes file into each of the packages that it is given.
type packageGenerator struct {
	tool   string
	file   string
	flags  []string
	marker string // the marker of packages that ask for it
	// methods is set if it writes methods of the types, which do not compile without them.
	methods bool
	// allFlag is a flag that takes all packages with the marker, reached or not.
	allFlag string
	// allPackages is set if it runs for all packages with the marker as soon as one is
	// reached.
	allPackages bool
}

// fixtureSet is a package whose TestCompatibility keeps the serialized form of all types
// below pkg in dir/testdata/HEAD.
type fixtureSet struct{ pkg, dir string }

var fixtureSets = []fixtureSet{
	{pkg: "k8s.io/api", dir: "staging/src/k8s.io/api"},
	{pkg: "k8s.io/apiextensions-apiserver/pkg/apis", dir: "staging/src/k8s.io/apiextensions-apiserver/pkg/apis"},
}

// minors are the known minors, with what hack/update-codegen.sh,
// hack/_update-generated-protobuf-dockerized.sh and hack/update-openapi-spec.sh of each run.
var minors = map[string]*minor{
	"v1.29": {
		tools:             oldTools,
		toolsVersion:      "v0.26.0",
		gopath:            true,
		packageGenerators: packageGenerators,
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
	"v1.36": withModelNames(v136Generators()),
	"v1.37": withModelNames(v137Generators()),
}

// v133 is v1.33 and v1.34: their scripts run the same commands.
var v133 = &minor{
	tools:             tools("k8s.io/code-generator/cmd/validation-gen"),
	packageGenerators: append(slices.Clone(packageGenerators), validationGen),
	clientFlags:       []string{"--prefers-protobuf"},
	specGates:         "AllAlpha=true,AllBeta=true,OpenAPIEnums=false",
}

// withModelNames returns v1.33 with other generators and with model names, which v1.35 added.
func withModelNames(generators []packageGenerator) *minor {
	m := *v133
	m.toolsVersion, m.modelNames, m.packageGenerators = "v0.47.0", true, generators
	return &m
}

// tools returns the packages of the generators that every minor has, and more.
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

// oldTools are the tools of v1.29, where openapi-gen is in another module.
var oldTools = slices.Insert(slices.DeleteFunc(tools(), func(tool string) bool {
	return tool == "k8s.io/kube-openapi/cmd/openapi-gen"
}), 0, "k8s.io/code-generator/cmd/openapi-gen")

// edited returns a copy of generators in which the one called tool is edited.
func edited(generators []packageGenerator, tool string, edit func(*packageGenerator)) []packageGenerator {
	generators = slices.Clone(generators)
	edit(&generators[slices.IndexFunc(generators, func(g packageGenerator) bool { return g.tool == tool })])
	return generators
}

// packageGenerators are the generators that every minor has.
var packageGenerators = []packageGenerator{
	{
		tool: "deepcopy-gen", marker: "deepcopy-gen", file: "zz_generated.deepcopy.go", methods: true,
		flags: []string{"--bounding-dirs=k8s.io/kubernetes,k8s.io/api"},
	},
	{
		// A conversion calls those of its fields, which it finds only in the packages that it is given.
		tool: "conversion-gen", marker: "conversion-gen", file: "zz_generated.conversion.go", allPackages: true,
		flags: []string{"--extra-peer-dirs=k8s.io/kubernetes/pkg/apis/core,k8s.io/kubernetes/pkg/apis/core/v1,k8s.io/api/core/v1"},
	},
	{
		// The defaults of a type call those of its fields, which may be of an unreached package.
		tool: "defaulter-gen", marker: "defaulter-gen", file: "zz_generated.defaults.go", allFlag: "--extra-peer-dirs",
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

// v136Generators run deepcopy-gen without --bounding-dirs.
func v136Generators() []packageGenerator {
	return edited(v133.packageGenerators, "deepcopy-gen", func(g *packageGenerator) { g.flags = nil })
}

// v137Generators refuse unknown tags, and validation-gen compares the tags of all packages with
// the functions that it finds. The tests that validation-gen can write into
// test/declarative_validation are not generated: they only count which rules upstream's tests
// reach.
func v137Generators() []packageGenerator {
	generators := edited(v136Generators(), "validation-gen", func(g *packageGenerator) {
		g.allPackages = true
		g.flags = []string{strings.Replace(g.flags[0], "k8s.io/apimachinery/pkg/apis/meta/v1,", "", 1)}
	})
	for i, g := range generators {
		generators[i].flags = append(slices.Clone(g.flags), "--lint-rules=known-tags-only,require-explicit-disablement")
	}
	return generators
}

// apimachineryPackages are the packages that every protobuf definition may refer to, in the
// form of go-to-protobuf's --apimachinery-packages.
var apimachineryPackages = []string{
	"+k8s.io/apimachinery/pkg/util/intstr",
	"+k8s.io/apimachinery/pkg/api/resource",
	"+k8s.io/apimachinery/pkg/runtime/schema",
	"+k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/apis/meta/v1beta1",
	"k8s.io/apimachinery/pkg/apis/testapigroup/v1",
}

// minorOf returns the minor of release.
func minorOf(release string) (*minor, error) {
	if m, ok := minors[semver.MajorMinor(release)]; ok {
		return m, nil
	}
	return nil, fmt.Errorf("the generators of %s are not generated by podenv: say in hack/internal/codegen/minors.go how its hack/update-codegen.sh runs them (known: %s)",
		release, strings.Join(slices.Sorted(maps.Keys(minors)), ", "))
}
