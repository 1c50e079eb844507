package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubeletFailure(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want []string // nothing: no line tells
	}{
		"inotify": {
			"kubelet.go:10] starting\nE1121 kubelet.go:1671] \"Failed to start cAdvisor\" err=\"inotify_init: too many open files\"\nexit\n",
			[]string{"kind-worker: E1121", "inotify_init: too many open files", "sysctl fs.inotify.max_user_instances"},
		},
		"disk":            {"write /var/lib/kubelet/x: no space left on device\n", []string{"podenv clean"}},
		"what passes":     {"dial tcp: connect: connection refused\nlisten: address already in use\n", nil},
		"nothing at all":  {"", nil},
		"no line at last": {"a line that is cut off", nil},
	} {
		t.Run(name, func(t *testing.T) {
			logs := t.TempDir()
			if err := os.MkdirAll(filepath.Join(logs, "kind-worker"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(logs, "kind-worker", "kubelet.log"), []byte(test.log), 0o644); err != nil {
				t.Fatal(err)
			}
			got := kubeletFailure(logs)
			if test.want == nil && got != "" {
				t.Errorf("told %q, want nothing", got)
			}
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("told %q, which lacks %q", got, want)
				}
			}
		})
	}
	for _, says := range fatalToKubelets {
		if remedyFor(says) == "" {
			t.Errorf("there is no remedy for %q", says)
		}
	}
}
