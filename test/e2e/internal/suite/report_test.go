package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestEventsAreListedOldestFirst(t *testing.T) {
	at := func(hour int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)) }
	event := func(name string, hour int) *v1.Event {
		return &v1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, LastTimestamp: at(hour),
			Type: v1.EventTypeWarning, Reason: "Failed", Message: "message of " + name,
			InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: "pod"},
		}
	}
	text, err := events(t.Context(), fake.NewClientset(event("a", 2), event("b", 1)), "ns")
	if err != nil {
		t.Fatal(err)
	}
	want := "01:00:00  Warning  Pod pod  Failed  message of b  (x1)\n02:00:00  Warning  Pod pod  Failed  message of a  (x1)\n"
	if text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
}

func TestPodsThatWereRestartedOrDoNotRunAreDescribed(t *testing.T) {
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	for name, test := range map[string]struct {
		status v1.ContainerStatus
		want   bool
	}{
		"one that runs":           {v1.ContainerStatus{State: running}, false},
		"one that crashes":        {v1.ContainerStatus{State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}, true},
		"one that runs once more": {v1.ContainerStatus{State: running, RestartCount: 1}, true},
	} {
		pod := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{test.status}}}
		if got := restarted(pod); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestKubeletLogIsTheJournalOfAKindNode(t *testing.T) {
	for name, test := range map[string]struct {
		docker string // a script; empty: no docker
		want   string // in the log, or in the error
	}{
		"a kind node":                {`echo "from docker: $*"`, "exec node timeout 120 sh -ec journalctl --unit=kubelet"},
		"a machine without docker":   {"", "docker exec node"},
		"a node that is not of kind": {"echo 'no such container' >&2; exit 1", "no such container"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", fakeDocker(t, test.docker))
			text, err := kubeletLog(t.Context(), "node")
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, test.want) {
				t.Errorf("got %q, want %q in it", text, test.want)
			}
		})
	}
}

// fakeDocker returns a PATH with a docker that runs script, or without one.
func fakeDocker(t testing.TB, script string) string {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
