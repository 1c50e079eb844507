package scale

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"k8s.io/apimachinery/pkg/util/sets"
)

// profiled is a profile of the API server's processor time, or why there is none.
type profiled struct {
	*profile.Profile
	err error
}

// profile has the API server profiled while pods are created. Two runs on a host with other things to do differ
// by more than what the patches may cost: what the added code takes is seen within one run.
func (b *bench) profile() <-chan profiled {
	made := make(chan profiled, 1)
	go func() {
		data, err := b.client.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", fmt.Sprint(max(1, *creations/perSecond))).DoRaw(b.Context())
		if err != nil {
			made <- profiled{err: err}
			return
		}
		p, err := profile.ParseData(data)
		made <- profiled{p, err}
	}()
	return made
}

// share is how many percent of the processor time were in files that the patches add, and in what they called.
func (b *bench) share(p profiled) float64 {
	b.Helper()
	if p.err != nil {
		b.Fatalf("profiling the API server: %v", p.err)
	}
	return share(p.Profile, b.added)
}

func share(p *profile.Profile, added sets.Set[string]) float64 {
	var ours, all int64
	for _, sample := range p.Sample {
		nanoseconds := sample.Value[len(sample.Value)-1]
		all += nanoseconds
		if slices.ContainsFunc(sample.Location, func(l *profile.Location) bool {
			return slices.ContainsFunc(l.Line, func(line profile.Line) bool { return added.Has(version.ReplaceAllString(line.Function.Filename, "")) })
		}) {
			ours += nanoseconds
		}
	}
	return 100 * float64(ours) / float64(max(1, all))
}

// version is that of a module in the name of a file.
var version = regexp.MustCompile(`@[^/]+`)

// addedFiles are files of a tree by the names that they have in its programs, without versions.
func addedFiles(list string) sets.Set[string] {
	files := sets.New[string]()
	for file := range strings.Lines(list) {
		file = strings.TrimSpace(file)
		if module, ok := strings.CutPrefix(file, "staging/src/"); ok {
			files.Insert(module)
		} else {
			files.Insert("k8s.io/kubernetes/" + file)
		}
	}
	return files
}

func TestShare(t *testing.T) {
	in := func(nanoseconds int64, files ...string) *profile.Sample {
		s := &profile.Sample{Value: []int64{1, nanoseconds}}
		for _, file := range files {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Filename: file}}}})
		}
		return s
	}
	p := &profile.Profile{Sample: []*profile.Sample{
		in(70, "runtime/proc.go", "k8s.io/apiserver@v0.33.13/pkg/server/handler.go"),
		in(20, "runtime/map.go", "k8s.io/kubernetes/plugin/pkg/admission/podpreset/cache.go", "k8s.io/apiserver@v0.33.13/pkg/server/handler.go"),
		in(10, "k8s.io/api@v0.33.13/settings/v1alpha1/generated.pb.go"),
	}}
	added := addedFiles("plugin/pkg/admission/podpreset/cache.go\nstaging/src/k8s.io/api/settings/v1alpha1/generated.pb.go\n")
	if got := share(p, added); got != 30 {
		t.Errorf("%g%%, want 30%%", got)
	}
}
