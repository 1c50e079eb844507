package nodeimage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml"

	"podenv.dev/hack/internal/testutil"
)

func TestContainerdConfig(t *testing.T) {
	config, err := toml.LoadBytes(containerdConfig("registry.k8s.io/pause:3.9"))
	if err != nil {
		t.Fatalf("the configuration is not TOML: %v", err)
	}
	images, runtime := []string{"plugins", "io.containerd.cri.v1.images"}, []string{"plugins", "io.containerd.cri.v1.runtime"}
	runc := slices.Concat(runtime, []string{"containerd", "runtimes", "runc"})
	for name, tc := range map[string]struct {
		path []string
		want any
	}{
		"has the version of its containerd":            {[]string{"version"}, int64(4)},
		"has the release's pause image":                {append(images, "pinned_images", "sandbox"), "registry.k8s.io/pause:3.9"},
		"leaves cgroups to systemd, as kubeadm has it": {append(runc, "options", "SystemdCgroup"), true},
		"starts from kind's spec":                      {append(runc, "base_runtime_spec"), criBase},
		"has the snapshotter that kind reads":          {append(images, "snapshotter"), "overlayfs"},
		"asks for OOM scores until the host is known":  {append(runtime, "restrict_oom_score_adj"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := config.GetPath(tc.path); got != tc.want {
				t.Errorf("%s = %v, want %v", strings.Join(tc.path, "."), got, tc.want)
			}
		})
	}
}

func TestKindsEntrypointFindsWhatItEditsInContainerdsConfig(t *testing.T) {
	entrypoint := kindFile(t, "/usr/local/bin/entrypoint")
	for _, line := range []string{`snapshotter = "overlayfs"`, "restrict_oom_score_adj = false"} {
		if !strings.Contains(strings.ReplaceAll(string(entrypoint), `\"`, `"`), line) {
			t.Errorf("kind's entrypoint does not edit %q any more", line)
		}
		if !bytes.Contains(containerdConfig(defaultPause), []byte(line)) {
			t.Errorf("containerd's configuration has no %q for kind's entrypoint to edit", line)
		}
	}
}

func TestKindBuildFindsThePauseImageInContainerdsConfig(t *testing.T) {
	kinds := regexp.MustCompile(`sandbox_image\s+=\s+"([^\n]+)"`) // as kind has it
	if found := kinds.FindSubmatch(containerdConfig(defaultPause)); found == nil || string(found[1]) != defaultPause {
		t.Errorf("in containerd's configuration kind finds the pause image %q", found)
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
	testutil.CheckError(t, err, "no process")
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
			config := containerdConfig(defaultPause)
			for path, text := range map[string]string{
				"proc/1/status":              "Name:\tsystemd\nCapEff:\t0000000000000000\nCapBnd:\t" + tc.capBnd + "\n",
				"proc/1/uid_map":             tc.uidMap,
				"etc/containerd/config.toml": string(config),
			} {
				testutil.WriteFile(t, filepath.Join(root, path), text)
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

func TestContainerdAndKubeletLearnTheVersionOfCgroups(t *testing.T) {
	for _, cgroupV2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("cgroup v2 %t", cgroupV2), func(t *testing.T) {
			root := t.TempDir()
			containerd, kubelet := filepath.Join(root, containerdConfigFile), filepath.Join(root, "var/lib/kubelet/config.yaml")
			config := string(containerdConfig(defaultPause))
			testutil.WriteFile(t, containerd, config)
			// The node starts on the other kind of host first, and must find out again.
			for i, v2 := range []bool{!cgroupV2, cgroupV2} {
				controllers := filepath.Join(root, "sys/fs/cgroup/cgroup.controllers")
				if v2 {
					testutil.WriteFile(t, controllers, "cpu\n")
				} else if err := os.RemoveAll(controllers); err != nil {
					t.Fatal(err)
				}
				if i == 1 { // containerd starts before kubeadm has written the file
					testutil.WriteFile(t, kubelet, "cgroupDriver: systemd\ncgroupRoot: /kubelet\nfailCgroupV1: true\n")
				}
				if out, err := exec.Command("sh", "files/kind/bin/cgroup-version.sh", root).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			driver := map[bool]string{false: "cgroupfs\nfailCgroupV1: false", true: "systemd"}[cgroupV2]
			for path, want := range map[string]string{
				containerd: strings.ReplaceAll(config, "SystemdCgroup = true", fmt.Sprintf("SystemdCgroup = %t", cgroupV2)),
				kubelet:    "cgroupDriver: " + driver + "\ncgroupRoot: /kubelet\n",
			} {
				got, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("%s:\n%s", path, diff)
				}
			}
		})
	}
}

func kindFile(t testing.TB, name string) []byte {
	t.Helper()
	files, err := kindFilesIn(os.DirFS(filepath.Join(moduleOf(t, kindModule), kindBase)))
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
