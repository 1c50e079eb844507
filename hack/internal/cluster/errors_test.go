package cluster

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/testutil"
)

func TestNodeFailure(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		file string   // kubelet.log if empty
		want []string // nothing: no line tells
	}{
		"inotify": {
			"kubelet.go:10] starting\nE1121 kubelet.go:1671] \"Failed to start cAdvisor\" err=\"inotify_init: too many open files\"\nexit\n", "",
			[]string{"kind-worker: E1121", "inotify_init: too many open files", "sysctl fs.inotify.max_user_instances"},
		},
		"disk": {"write /var/lib/kubelet/x: no space left on device\n", "", []string{"podenv clean"}},
		"an API server that lacks a switch": {
			"2026-11-27T15:07:28Z stderr F E1127 run.go:72] \"command failed\" err=\"--peer-ca-file is missing\"\n", "pods/kube-system_kube-apiserver-kind-worker_1/kube-apiserver/3.log",
			[]string{"kind-worker: 2026", "--peer-ca-file is missing"},
		},
		"a pod of a user": {"\"command failed\"\n", "pods/default_a_1/a/0.log", nil},
		"what passes":     {"dial tcp: connect: connection refused\nlisten: address already in use\n", "", nil},
		"nothing at all":  {"", "", nil},
		"no line at last": {"a line that is cut off", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			logs := t.TempDir()
			testutil.WriteFile(t, filepath.Join(logs, "kind-worker", cmp.Or(test.file, "kubelet.log")), test.log)
			got := nodeFailure(logs)
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
