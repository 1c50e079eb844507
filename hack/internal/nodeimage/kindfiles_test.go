package nodeimage

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

func TestKindFilesMayBeRunIfTheyAreScripts(t *testing.T) {
	files, err := kindFilesIn(fstest.MapFS{
		"etc/containerd/config.toml":      {Data: []byte("version = 3")},
		"etc/default/kubelet":             {Data: []byte("A=b")},
		"kind/bin/mount-product-files.sh": {Data: []byte("#!/bin/bash")},
		"usr/local/bin/entrypoint":        {Data: []byte("#!/bin/bash")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	for _, f := range files {
		got[f.Path] = f.Mode
	}
	want := map[string]fs.FileMode{"/etc/default/kubelet": 0o644, "/kind/bin/mount-product-files.sh": 0o755, "/usr/local/bin/entrypoint": 0o755}
	if len(got) != len(want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for name, mode := range want {
		if got[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, got[name], mode)
		}
	}
}

func TestKindFilesOfAnotherLayoutAreAnError(t *testing.T) {
	_, err := kindFilesIn(fstest.MapFS{})
	testutil.CheckError(t, err, "laid out differently")
}

// What kind's Dockerfile does besides copying files is done here by hand, so a new
// version of kind that does more has to be looked at.
func TestServicesAreThoseOfKindsDockerfile(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join(moduleOf(t, kindModule), "images/base/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, f := range services() {
		switch {
		case f.Link == "/dev/null":
			ours["mask "+filepath.Base(f.Path)] = true
		case strings.Contains(f.Path, ".wants/"):
			ours["enable "+filepath.Base(f.Path)] = true
		}
	}
	theirs := map[string]bool{}
	for _, m := range regexp.MustCompile(`systemctl (enable|mask) (\S+)`).FindAllStringSubmatch(string(dockerfile), -1) {
		theirs[m[1]+" "+m[2]] = true
	}
	for what := range theirs {
		if !ours[what] {
			t.Errorf("kind's Dockerfile has %q, services does not", what)
		}
	}
	for what := range ours {
		if !theirs[what] && what != "enable podenv-images.service" {
			t.Errorf("services has %q, kind's Dockerfile does not", what)
		}
	}
	for _, m := range regexp.MustCompile(`rm -f (/\S+)`).FindAllStringSubmatch(string(dockerfile), -1) {
		pattern := strings.TrimPrefix(m[1], "/")
		if strings.HasPrefix(pattern, "lib/") {
			pattern = "usr/" + pattern // Debian's /lib is a link to it
		}
		if !isDropped(strings.ReplaceAll(strings.ReplaceAll(pattern, "*.wants", "any.wants"), "*", "any")) {
			t.Errorf("kind's Dockerfile removes %s, the base image has it", m[1])
		}
	}
}

func TestEnabledServicesExist(t *testing.T) {
	files, err := baseFiles(t.Context(), layout.MustFind())
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range files {
		have[f.Path] = true
	}
	for _, f := range services() {
		if strings.Contains(f.Path, ".wants/") && !have[f.Link] {
			t.Errorf("%s is enabled, but there is no %s", filepath.Base(f.Path), f.Link)
		}
	}
	for _, name := range []string{"/usr/local/bin/entrypoint", "/kind/manifests/default-cni.yaml", "/kind/bin/mount-product-files.sh", "/kind/bin/restrict-oom-score-adj.sh", "/kind/bin/cgroup-version.sh",
		"/etc/systemd/system/containerd.service.d/10-podenv.conf", "/etc/systemd/system/kubelet.service.d/20-podenv.conf", "/etc/systemd/journald.conf.d/10-podenv.conf", containerdConfigFile} {
		if !have[name] {
			t.Errorf("the base image has no %s", name)
		}
	}
}
