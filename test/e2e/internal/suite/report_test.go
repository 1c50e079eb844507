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

func TestRestartsAreListedWithWhatTheyWaitFor(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 1, 1, 2, 3, 0, time.UTC))
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at}}
	ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: at, Reason: "Error", ExitCode: 1}}
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 2m40s"}}
	pod := func(name string, status v1.ContainerStatus) *v1.Pod {
		status.Name = "main"
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name},
			Status:     v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{status}},
		}
	}
	text, err := restarts(t.Context(), fake.NewClientset(
		pod("calm", v1.ContainerStatus{State: running}),
		pod("crashing", v1.ContainerStatus{State: waiting, LastTerminationState: ended, RestartCount: 5}),
		pod("restarted", v1.ContainerStatus{State: running, RestartCount: 1}),
	))
	want := "crashing: main: 5 restarts, waits: CrashLoopBackOff: back-off 2m40s, ended at 01:02:03: Error, exit code 1\n" +
		"restarted: main: 1 restarts, runs since 01:02:03\n"
	if err != nil || text != want {
		t.Errorf("got\n%swant\n%serror %v", text, want, err)
	}
}

func TestKubeletLogIsTheJournalOfAKindNode(t *testing.T) {
	for name, test := range map[string]struct {
		docker string // a script; empty: no docker
		want   string // in the log, or in the error
	}{
		"a kind node":                {`echo "from docker: $*"`, "exec node journalctl --unit=kubelet"},
		"a machine without docker":   {"", "journal of a kind node"},
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
