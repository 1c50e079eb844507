package expected

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"podenv.dev/test/e2e/internal/pods"
)

// Log gathers what the containers of the workload in one namespace printed. Kubelets keep
// two runs of a container, so it is added to often.
type Log struct {
	Written []Writing
	Runs    []Run
	known   map[string]bool
}

// LogScript prints, on a node, all that containers of a namespace printed and that is still
// there: nothing else knows it while the API server is down. Files may go meanwhile.
func LogScript(namespace string) string {
	return "cd /var/log/pods; grep -rH '' " + namespace + "_* || true"
}

// Add adds what LogScript printed, as far as it is new.
func (l *Log) Add(printed string) error {
	if l.known == nil {
		l.known = map[string]bool{}
	}
	for line := range strings.Lines(printed) {
		if l.known[line] {
			continue
		}
		if err := l.add(line); err != nil {
			return fmt.Errorf("%w, from the line %q", err, line)
		}
		l.known[line] = true
	}
	return nil
}

// add adds a line NAMESPACE_POD_UID/CONTAINER/RUN.log:TIME STREAM TAG TEXT. What follows the
// colon is the format of CRI.
func (l *Log) add(line string) error {
	path, entry, ok := strings.Cut(line, ".log:")
	names, fields := strings.Split(path, "/"), strings.SplitN(strings.TrimSuffix(entry, "\n"), " ", 4)
	if !ok || len(names) != 3 || len(fields) != 4 {
		return fmt.Errorf("this is no line of a container's log")
	}
	pod := strings.Split(names[0], "_")
	if len(pod) != 3 {
		return fmt.Errorf("%q is no folder of a pod's logs", names[0])
	}
	at, err := time.Parse(time.RFC3339Nano, fields[0])
	if err != nil {
		return err
	}
	container, stream, text := names[1], fields[1], fields[3]
	writes := container == setup || container == Writer
	switch {
	case stream != "stdout" && writes:
		return nil // a shell that is ended with the node says so
	case stream != "stdout":
		return fmt.Errorf("container %s of pod %s complains: %s", container, pod[1], text)
	case writes:
		generation, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("the writer announces no generation: %w", err)
		}
		l.Written = append(l.Written, Writing{Pod: pod[1], Generation: generation, Announced: at})
		return nil
	}
	env, err := pods.ParseEnv(text)
	if err != nil {
		return err
	}
	l.Runs = append(l.Runs, Run{Pod: pod[1], Container: container, Printed: at, Env: env})
	return nil
}

// RanSince reports whether a container of a pod has printed its environment since a time.
func (l *Log) RanSince(pod, container string, since time.Time) bool {
	for _, run := range l.Runs {
		if run.Pod == pod && run.Container == container && run.Printed.After(since) {
			return true
		}
	}
	return false
}
