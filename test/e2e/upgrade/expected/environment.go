// Package expected has the environments and states that the suite upgrade expects during
// failures and upgrades. It has a workload whose env files change all the time, reads the
// output of its containers, and checks each environment against the rules of KEP-3721. The
// kubelet of a stock release before v1.34 does not know the field, and sets the variable to the
// empty string, whatever the file has.
//
//	Workload ─► logs on the node ─► Log ─► Checker
package expected

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podenv.dev/featuregates"
)

// Since has the kubelets that may have started containers since a time. There are two while
// one replaces the other.
type Since struct {
	Time     time.Time
	Kubelets []featuregates.Build
}

// Writing is one generation of the env file of a pod. The writer announces a generation before
// it renames the file into place, so the file is in place once the next one is announced.
type Writing struct {
	Pod        string
	Generation int
	Announced  time.Time
}

// Run is the output of one run of a container.
type Run struct {
	Pod, Container string
	Printed        time.Time
	Env            map[string]string
}

// Checker checks the environments of a workload.
type Checker struct {
	Env      map[string][]v1.EnvVar // the env of each container's spec
	Kubelets []Since                // ordered by time
}

// clockSlack is how much the timestamps of two containers' output may be out of order.
const clockSlack = time.Second

// ValueOf is the value of every key in one generation of a pod's file. It contains the pod's
// name, so that the file of another pod is detected.
func ValueOf(pod string, generation int) string { return fmt.Sprintf("%s.%d", pod, generation) }

// Check returns an error for each run whose environment breaks the rules.
func (c Checker) Check(written []Writing, runs []Run) error {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Run) int { return a.Printed.Compare(b.Printed) })
	ofPod := map[string][]Writing{}
	for _, w := range written {
		ofPod[w.Pod] = append(ofPod[w.Pod], w)
	}
	last := map[[2]string]*Run{} // by pod and container
	var wrong []error
	for _, run := range runs {
		written := ofPod[run.Pod]
		err := c.checkRun(written, run)
		which := [2]string{run.Pod, run.Container}
		if err == nil {
			err = checkOrder(written, last[which], run)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("container %s of pod %s, run of %s: %w", run.Container, run.Pod, run.Printed.Format("15:04:05.000"), err))
		}
		last[which] = &run
	}
	return errors.Join(wrong...)
}

// checkRun checks a run by itself, given what the writer of its pod wrote. One of the kubelets
// that may have started it must give this environment.
func (c Checker) checkRun(written []Writing, run Run) error {
	asked, ok := c.Env[run.Container]
	if !ok {
		return errors.New("nobody knows what it asks for")
	}
	if err := checkNames(asked, run.Env); err != nil {
		return err
	}
	var wrong []error
	for _, kubelet := range c.kubelets(run.Printed) {
		check := map[featuregates.Build]func([]Writing, []v1.EnvVar, Run) error{featuregates.Patched: checkPatched, featuregates.Stock: checkStock}[kubelet]
		err := check(written, asked, run)
		if err == nil {
			return nil
		}
		wrong = append(wrong, fmt.Errorf("as of a %s kubelet: %w", kubelet, err))
	}
	if len(wrong) == 0 {
		return errors.New("no kubelet was there to start it")
	}
	return errors.Join(wrong...)
}

// kubelets are the kubelets that may have started a container that printed at a time.
func (c Checker) kubelets(at time.Time) (kubelets []featuregates.Build) {
	for _, since := range c.Kubelets {
		if !since.Time.After(at) {
			kubelets = since.Kubelets
		}
	}
	return kubelets
}

// checkNames returns an error for a variable that is not in the container's spec, such as
// another line of the file, unless the kubelet and the runtime always set it.
func checkNames(asked []v1.EnvVar, env map[string]string) error {
	for name := range env {
		if !slices.ContainsFunc(asked, func(v v1.EnvVar) bool { return v.Name == name }) &&
			!slices.Contains([]string{"PATH", "HOSTNAME", "HOME"}, name) && !strings.HasPrefix(name, "KUBERNETES_") {
			return fmt.Errorf("nobody asked for the variable %s", name)
		}
	}
	return nil
}

// checkPatched checks for a patched kubelet: all values are of one generation that was written.
func checkPatched(written []Writing, asked []v1.EnvVar, run Run) error {
	first := ""
	for _, v := range asked {
		value, set := run.Env[v.Name]
		switch ref := fileKey(v); {
		case ref == nil:
			if value != v.Value {
				return fmt.Errorf("%s is %q, want %q", v.Name, value, v.Value)
			}
		case !slices.Contains(keys, ref.Key) && (ref.Optional == nil || !*ref.Optional):
			return fmt.Errorf("it has started without the key %s, which %s requires", ref.Key, v.Name)
		case !slices.Contains(keys, ref.Key):
			if set {
				return fmt.Errorf("%s is %q, though the file has no key %s", v.Name, value, ref.Key)
			}
		case !set:
			return fmt.Errorf("%s is not set, though the file has the key %s", v.Name, ref.Key)
		case !wasWritten(written, run.Pod, value):
			return fmt.Errorf("%s is %q, which the pod's writer has never written", v.Name, value)
		case first != "" && value != first:
			return fmt.Errorf("%s is %q, of another generation than %q", v.Name, value, first)
		default:
			first = value
		}
	}
	return nil
}

// wasWritten reports whether the writer of a pod wrote a value. The writer skips no generation,
// so a later one proves earlier ones whose announcement was lost with a log.
func wasWritten(written []Writing, pod, value string) bool {
	generation, err := strconv.Atoi(strings.TrimPrefix(value, pod+"."))
	return err == nil && generation >= 0 && value == ValueOf(pod, generation) &&
		slices.ContainsFunc(written, func(w Writing) bool { return w.Pod == pod && w.Generation >= generation })
}

// checkStock checks for a stock kubelet.
func checkStock(_ []Writing, asked []v1.EnvVar, run Run) error {
	for _, v := range asked {
		want := v.Value
		if fileKey(v) != nil {
			want = ""
		}
		if value, set := run.Env[v.Name]; !set || value != want {
			return fmt.Errorf("%s is %q, set: %t, want %q", v.Name, value, set, want)
		}
	}
	return nil
}

// checkOrder checks a run against the previous one. The kubelet reads the file after the
// previous run has ended, so the generation of that time is the oldest that run may have.
func checkOrder(written []Writing, before *Run, run Run) error {
	generation, ok := run.Generation()
	if before == nil || !ok {
		return nil
	}
	if old, ok := before.Generation(); ok && generation < old {
		return fmt.Errorf("generation %d after generation %d", generation, old)
	}
	if oldest := GenerationAt(written, run.Pod, before.Printed); generation < oldest {
		return fmt.Errorf("generation %d, though generation %d was there before the last run had ended", generation, oldest)
	}
	return nil
}

// GenerationAt is the generation that the file of a pod has at a time, at least.
func GenerationAt(written []Writing, pod string, at time.Time) int {
	newest := 0
	for _, w := range written {
		if w.Pod == pod && !w.Announced.After(at.Add(-clockSlack)) {
			newest = max(newest, w.Generation)
		}
	}
	return newest - 1
}

// Generation is the generation of a run's values. There is none with a stock kubelet.
func (run Run) Generation() (int, bool) {
	for _, value := range run.Env {
		if n, ok := strings.CutPrefix(value, run.Pod+"."); ok {
			generation, err := strconv.Atoi(n)
			return generation, err == nil
		}
	}
	return 0, false
}

func fileKey(v v1.EnvVar) *v1.FileKeySelector {
	if v.ValueFrom == nil {
		return nil
	}
	return v.ValueFrom.FileKeyRef
}
