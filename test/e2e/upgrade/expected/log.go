package expected

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"podenv.dev/test/e2e/internal/pods"
)

// Log collects the output of the workload's containers in one namespace. Kubelets keep the logs
// of only two runs of a container, so call Add often.
type Log struct {
	Written []Writing
	Runs    []Run
	seen    map[string]bool
}

// LogScript is a shell script that prints, on a node, all container logs of a namespace. The
// API is no alternative, as it may be down. Files may disappear meanwhile.
func LogScript(namespace string) string {
	return "cd /var/log/pods; grep -rH '' " + namespace + "_* || true"
}

// Add adds the new lines of LogScript's output.
func (l *Log) Add(output string) error {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	for line := range strings.Lines(output) {
		if l.seen[line] {
			continue
		}
		if err := l.add(line); err != nil {
			return fmt.Errorf("%w, from the line %q", err, line)
		}
		l.seen[line] = true
	}
	return nil
}

// add adds a line NAMESPACE_POD_UID/CONTAINER/RUN.log:TIME STREAM TAG TEXT. The part after the
// colon has the CRI log format.
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
	isWriter := container == setup || container == Writer
	switch {
	case stream != "stdout" && isWriter:
		return nil // the shell reports when the node's shutdown terminates it
	case stream != "stdout":
		return fmt.Errorf("container %s of pod %s complains: %s", container, pod[1], text)
	case isWriter:
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
	return slices.ContainsFunc(l.Runs, func(run Run) bool {
		return run.Pod == pod && run.Container == container && run.Printed.After(since)
	})
}
