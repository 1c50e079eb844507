package nodeimage

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml"

	"podenv.dev/hack/internal/series"
)

// minors are one whose nodes have containerd 1.6, and one with containerd 2.
var minors = []series.Series{{Name: "v1.32"}, {Name: containerd2Since}}

func TestContainerdConfig(t *testing.T) {
	v1 := []string{"plugins", "io.containerd.grpc.v1.cri"}
	images2, runtime2 := []string{"plugins", "io.containerd.cri.v1.images"}, []string{"plugins", "io.containerd.cri.v1.runtime"}
	for _, tc := range []struct {
		series                          series.Series
		version                         int64
		sandbox, snapshotter, runc, oom []string
	}{
		{minors[0], 2, append(v1, "sandbox_image"), append(v1, "containerd", "snapshotter"), append(v1, "containerd", "runtimes", "runc"), append(v1, "restrict_oom_score_adj")},
		{minors[1], 4, append(images2, "pinned_images", "sandbox"), append(images2, "snapshotter"), append(runtime2, "containerd", "runtimes", "runc"), append(runtime2, "restrict_oom_score_adj")},
	} {
		text := containerdConfig(tc.series, "registry.k8s.io/pause:3.9")
		config, err := toml.LoadBytes(text)
		if err != nil {
			t.Fatalf("the configuration of %s is not TOML: %v", tc.series.Name, err)
		}
		for name, want := range map[string]struct {
			path  []string
			value any
		}{
			"has the version of its containerd":            {[]string{"version"}, tc.version},
			"has the release's pause image":                {tc.sandbox, "registry.k8s.io/pause:3.9"},
			"leaves cgroups to systemd, as kubeadm has it": {slices.Concat(tc.runc, []string{"options", "SystemdCgroup"}), true},
			"starts from kind's spec":                      {slices.Concat(tc.runc, []string{"base_runtime_spec"}), criBase},
			"has the snapshotter that kind reads":          {tc.snapshotter, "overlayfs"},
			"asks for OOM scores until the host is known":  {tc.oom, false},
		} {
			t.Run(tc.series.Name+" "+name, func(t *testing.T) {
				if got := config.GetPath(want.path); got != want.value {
					t.Errorf("%s = %v, want %v", strings.Join(want.path, "."), got, want.value)
				}
			})
		}
	}
}

func TestKindsEntrypointFindsWhatItEditsInContainerdsConfig(t *testing.T) {
	entrypoint := kindFile(t, "/usr/local/bin/entrypoint")
	for _, s := range minors {
		config := containerdConfig(s, defaultPause)
		for _, line := range []string{`snapshotter = "overlayfs"`, "restrict_oom_score_adj = false"} {
			if !strings.Contains(strings.ReplaceAll(string(entrypoint), `\"`, `"`), line) {
				t.Errorf("kind's entrypoint does not edit %q any more", line)
			}
			if !bytes.Contains(config, []byte(line)) {
				t.Errorf("containerd's configuration on %s has no %q for kind's entrypoint to edit", s.Name, line)
			}
		}
	}
}

func TestKindBuildFindsThePauseImageInContainerdsConfig(t *testing.T) {
	kinds := regexp.MustCompile(`sandbox_image\s+=\s+"([^\n]+)"`) // as kind has it
	for _, s := range minors {
		config := containerdConfig(s, defaultPause)
		if found := kinds.FindSubmatch(config); found == nil || string(found[1]) != defaultPause {
			t.Errorf("in containerd's configuration on %s kind finds the pause image %q", s.Name, found)
		}
	}
}

func TestContainerdSpecAddsKindsHook(t *testing.T) {
	got, err := containerdSpec([]byte(`{"ociVersion":"1.0.2","process":{"cwd":"/","rlimits":[{"type":"RLIMIT_NOFILE"}]},"hooks":{"createContainer":[{"path":"/first"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"ociVersion":"1.0.2","process":{"cwd":"/"},"hooks":{"createContainer":[{"path":"/first"},{"path":"/kind/bin/mount-product-files.sh"}]}}`
	var gotSpec, wantSpec any
	if err := json.Unmarshal(got, &gotSpec); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wantSpec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantSpec, gotSpec); diff != "" {
		t.Error(diff)
	}
	_, err = containerdSpec([]byte(`{"ociVersion":"1.0.2"}`))
	checkError(t, err, "no process")
}

func TestOOMScoresAreRestrictedOnlyWhereTheHostIsBounded(t *testing.T) {
	const initial, nested = "         0          0 4294967295\n", "         0     100000      65536\n"
	for name, tc := range map[string]struct{ capBnd, uidMap, want string }{
		"all capabilities":                     {"000001ffffffffff", initial, "false"},
		"all but CAP_SYS_RESOURCE":             {"000001fffeffffff", initial, "true"},
		"only CAP_SYS_RESOURCE":                {"0000000001000000", initial, "false"},
		"all capabilities of a user namespace": {"000001ffffffffff", nested, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			config := containerdConfig(minors[1], defaultPause)
			for path, text := range map[string]string{
				"proc/1/status":              "Name:\tsystemd\nCapEff:\t0000000000000000\nCapBnd:\t" + tc.capBnd + "\n",
				"proc/1/uid_map":             tc.uidMap,
				"etc/containerd/config.toml": string(config),
			} {
				writeFile(t, filepath.Join(root, path), text)
			}
			// Twice: a node that starts again on another host must find out again.
			for range 2 {
				if out, err := exec.Command("sh", "files/kind/bin/restrict-oom-score-adj.sh", root).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			got, err := os.ReadFile(filepath.Join(root, "etc/containerd/config.toml"))
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.ReplaceAll(string(config), "restrict_oom_score_adj = false", "restrict_oom_score_adj = "+tc.want); string(got) != want {
				t.Errorf("configuration:\n%s", cmp.Diff(want, string(got)))
			}
		})
	}
}

func TestContainerd2ManagesCgroupsItselfOnCgroupV1(t *testing.T) {
	for name, tc := range map[string]struct {
		series   series.Series
		cgroupV2 bool
		want     string
	}{
		"containerd 2, cgroup v1": {minors[1], false, "false"},
		"containerd 2, cgroup v2": {minors[1], true, "true"},
		"containerd 1, cgroup v1": {minors[0], false, "true"},
		"containerd 1, cgroup v2": {minors[0], true, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			config := containerdConfig(tc.series, defaultPause)
			path := filepath.Join(root, "etc/containerd/config.toml")
			writeFile(t, path, string(config))
			// The node starts on the other kind of host first, and must find out again.
			for _, v2 := range []bool{!tc.cgroupV2, tc.cgroupV2} {
				controllers := filepath.Join(root, "sys/fs/cgroup/cgroup.controllers")
				if v2 {
					writeFile(t, controllers, "cpu\n")
				} else if err := os.RemoveAll(controllers); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command("sh", "files/kind/bin/cgroup-driver.sh", root).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.ReplaceAll(string(config), "SystemdCgroup = true", "SystemdCgroup = "+tc.want); string(got) != want {
				t.Errorf("configuration:\n%s", cmp.Diff(want, string(got)))
			}
		})
	}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func kindFile(t testing.TB, name string) []byte {
	t.Helper()
	files, err := kindFiles(t.Context(), repository(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path == name {
			return f.Data
		}
	}
	t.Fatalf("kind's base image has no %s", name)
	return nil
}
