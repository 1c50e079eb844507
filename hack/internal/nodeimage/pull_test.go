package nodeimage

import (
	"runtime"
	"strings"
	"testing"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/testutil"
)

func TestPullTakesNodeImagesOfPodenvAlone(t *testing.T) {
	foreign := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for name, tc := range map[string]struct {
		has, inspect, pull string
		want               string
		pulls              bool
	}{
		"an image that is there":         {"true", runtime.GOARCH + " v1.33.13+podenv.26", "exit 1", "", false},
		"an image that is not":           {"false", runtime.GOARCH + " v1.33.13+podenv.26", "", "", true},
		"kindest/node":                   {"true", runtime.GOARCH + " ", "", "it lacks the label", false},
		"another architecture":           {"true", foreign + " v1.33.13+podenv.26", "", "it is for " + foreign, false},
		"an image that cannot be pulled": {"false", "", "echo denied >&2; exit 1", "docker login", true},
		"an index without it":            {"false", "", "echo no matching manifest for linux/arm64 >&2; exit 1", "for this machine's architecture", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, calls := fakeCommands(t, map[string]string{"docker": `case "$*" in
*{{.Id}}*) ` + tc.has + ` ;;
*inspect*) echo "` + tc.inspect + `" ;;
pull*) ` + tc.pull + `
esac`})
			version, err := Pull(t.Context(), &engine.Engine{}, "host.example/k8s/node:1", nil)
			if testutil.CheckError(t, err, tc.want); err == nil && version != "v1.33.13+podenv.26" {
				t.Errorf("version %q", version)
			}
			if strings.Contains(tc.want, "it ") && !strings.Contains(err.Error(), "no node image of podenv for this machine: it ") {
				t.Errorf("%v does not say what the image is not", err)
			}
			if pulls := strings.Contains(strings.Join(calls(), "\n"), "docker pull host.example/k8s/node:1"); pulls != tc.pulls {
				t.Errorf("pulls: %v, want %v", pulls, tc.pulls)
			}
		})
	}
}
