package pods

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestPodsDifferOnlyInWhereTheirVariablesComeFrom(t *testing.T) {
	plain := sources[0].pod(1, false)
	for _, s := range sources {
		pod := s.pod(1, false)
		if n := len(pod.Spec.Containers[0].Env); n != variables {
			t.Errorf("%s: %d variables, want %d", s.name, n, variables)
		}
		pod.Name, pod.Spec.Containers[0].Env = plain.Name, plain.Spec.Containers[0].Env
		if !reflect.DeepEqual(pod, plain) {
			t.Errorf("%s: another pod:\n%+v\n%+v", s.name, pod, plain)
		}
	}
}

func TestTheFormOfTheEnvFile(t *testing.T) {
	for quoted, want := range map[bool]string{false: `echo "KEY$i=value-$i"`, true: `echo "KEY$i='value-$i'"`} {
		script := sources[0].pod(1, quoted).Spec.InitContainers[0].Command[2]
		if !strings.Contains(script, want) || !strings.HasSuffix(script, ">/data/"+envFile) {
			t.Errorf("quoted %t: the script is %s", quoted, script)
		}
	}
}

func TestTheFirstLineTellsTheStartAndMustHaveTheVariables(t *testing.T) {
	started, err := parseFirstLine(`2026-11-21T04:05:06.123456789Z {"env":["KEY98=value-98","KEY99=value-99"]}` + "\n")
	if want := time.Date(2026, 11, 21, 4, 5, 6, 123456789, time.UTC); err != nil || !started.Equal(want) {
		t.Errorf("got %s, %v; want %s", started, err, want)
	}
	for name, log := range map[string]string{
		"nothing":      "",
		"no time":      "{}",
		"no variables": `2026-11-21T04:05:06.123456789Z {"env":[]}`,
	} {
		if _, err := parseFirstLine(log); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func podWith(name, node string, state v1.ContainerState) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{NodeName: node}}
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: mainContainer, State: state}}
	return pod
}

func TestPodWatchKeepsTheTimeOfTheFirstEventWithANode(t *testing.T) {
	p := newPodWatch(watch.NewFake())
	at := func(s int) time.Time { return time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC) }
	p.note(at(1), watch.Event{Type: watch.Added, Object: podWith("a", "", v1.ContainerState{})})
	p.note(at(2), watch.Event{Type: watch.Modified, Object: podWith("a", "node", v1.ContainerState{})})
	p.note(at(3), watch.Event{Type: watch.Modified, Object: podWith("a", "node", v1.ContainerState{Running: &v1.ContainerStateRunning{}})})
	if got := p.scheduledAt("a"); !got.Equal(at(2)) {
		t.Errorf("scheduled at %s, want %s", got, at(2))
	}
	if waiting, err := p.waiting([]string{"a"}); err != nil || len(waiting) > 0 {
		t.Errorf("it runs, and waits for %q, %v", waiting, err)
	}
}

func TestPodWatchSaysWhyAPodDoesNotRun(t *testing.T) {
	p := newPodWatch(watch.NewFake())
	p.note(time.Unix(1, 0), watch.Event{Type: watch.Modified, Object: podWith("a", "node", v1.ContainerState{
		Waiting: &v1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "no such key"}})})
	waiting, err := p.waiting([]string{"a", "b"})
	if err != nil || len(waiting) != 2 || !strings.Contains(waiting[0], "no such key") {
		t.Errorf("waiting for %q, %v", waiting, err)
	}
}

func TestTheEndOfTheWatchIsAnError(t *testing.T) {
	w := watch.NewFake()
	p := newPodWatch(w)
	w.Stop()
	gomega.NewWithT(t).Eventually(func() string { _, err := p.waiting(nil); return fmt.Sprint(err) }).Should(gomega.ContainSubstring("ended"))
}

func TestRequestsAreThoseOfPods(t *testing.T) {
	read := func(create, status string) requests {
		t.Helper()
		counts, err := readRequests(strings.NewReader(`# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} ` + create + `
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} ` + status + `
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 77
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 1.234e+06
apiserver_request_duration_seconds_count{resource="pods",verb="POST"} 9
`))
		if err != nil {
			t.Fatal(err)
		}
		return counts
	}
	diff := read("52", "110").since(read("2", "10"))
	if got, want := diff.String(), "PATCH pods/status 100, POST pods 50"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := diff.over(50).String(), "PATCH pods/status 2, POST pods 1"; got != want {
		t.Errorf("per pod: got %q, want %q", got, want)
	}
	if got := diff.sum(); got != 150 {
		t.Errorf("got %g in all, want 150", got)
	}
	if _, err := readRequests(strings.NewReader("other 1\n")); err == nil {
		t.Error("metrics without the count are no error")
	}
}
