package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
)

const (
	// cleanupTimeout is how long cleaning up may take after a failure or Ctrl-C.
	cleanupTimeout = time.Minute
	// quietPeriod is how long no container must have appeared before an interrupted run counts
	// as ended: the daemon may still execute a docker run whose client is gone.
	quietPeriod = time.Second
	// NetworkEnv is the variable from which kind takes the name of a cluster's docker network.
	// This package sets it temporarily in the environment of its process, which child processes
	// inherit: a child process that runs kind needs its own value.
	NetworkEnv = "KIND_EXPERIMENTAL_DOCKER_NETWORK"
)

func provider(step *progress.Step) *kind.Provider {
	return kind.NewProvider(kind.ProviderWithDocker(), kind.ProviderWithLogger(logger{step: step}))
}

// networkEnvMu is held while NetworkEnv has the name of a cluster's network.
var networkEnvMu sync.Mutex

// kindCreate lets kind create the cluster in a network of its own. This process creates only
// one cluster at a time.
func (c *Cluster) kindCreate(cfg *Config, step *progress.Step) error {
	networkEnvMu.Lock()
	defer networkEnvMu.Unlock()
	before, set := os.LookupEnv(NetworkEnv)
	if err := os.Setenv(NetworkEnv, c.Context()); err != nil {
		return err
	}
	defer func() {
		if os.Unsetenv(NetworkEnv); set {
			os.Setenv(NetworkEnv, before) //nolint:errcheck // it was that before
		}
	}()
	return provider(step).Create(c.name,
		kind.CreateWithV1Alpha4Config(cfg.kind()),
		kind.CreateWithKubeconfigPath(c.Kubeconfig()),
		// abort deletes the nodes of a failed cluster, after it has collected their logs.
		kind.CreateWithRetain(true))
}

// provision lets kind create the cluster. kind cannot be cancelled, but it only runs docker
// commands on the nodes, which end when their containers are deleted.
func (c *Cluster) provision(ctx context.Context, cfg *Config, step *progress.Step) error {
	done := make(chan error, 1)
	go func() { done <- c.kindCreate(cfg, step) }()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explain(err)
	case <-ctx.Done():
	}
	step.Now("interrupted: deleting the nodes made so far")
	stopped := poll.Until(context.WithoutCancel(ctx), cleanupTimeout, func(cleanup context.Context) error {
		if _, err := c.docker.removeContainers(cleanup, c.name); err != nil {
			fmt.Fprintf(step.Log(), "removing nodes: %v\n", err)
		}
		select {
		case <-done:
			return nil
		default:
			return errors.New("kind still runs")
		}
	})
	if stopped != nil {
		return fmt.Errorf("%w; kind did not end within %s: run `%s`", ctx.Err(), cleanupTimeout, c.command("down"))
	}
	return ctx.Err()
}

// sweep deletes the containers of a cluster until no new one has appeared for quietPeriod.
func (d docker) sweep(ctx context.Context, name string) error {
	clean := time.Now()
	return poll.Until(ctx, cleanupTimeout, func(ctx context.Context) error {
		n, err := d.removeContainers(ctx, name)
		if n > 0 || err != nil {
			clean = time.Now()
		}
		if err == nil && time.Since(clean) < quietPeriod {
			err = fmt.Errorf("nodes of cluster %s that are still being made", name)
		}
		return err
	})
}

// logger shows kind's status lines as the step's current action, and writes all other
// messages of kind to the step's log.
type logger struct {
	step  *progress.Step
	level log.Level // of Info
}

// V and the methods below are kind's.
func (l logger) V(level log.Level) log.InfoLogger  { return logger{l.step, level} }
func (l logger) Enabled() bool                     { return l.level <= 3 } // kubeadm's output is at 3
func (l logger) Warn(message string)               { l.print("warning: " + message) }
func (l logger) Warnf(format string, args ...any)  { l.Warn(fmt.Sprintf(format, args...)) }
func (l logger) Error(message string)              { l.print("error: " + message) }
func (l logger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }
func (l logger) Infof(format string, args ...any)  { l.Info(fmt.Sprintf(format, args...)) }

func (l logger) Info(message string) {
	if now := status(message); l.level == 0 && now != "" {
		l.step.Now("%s", now)
	} else if l.Enabled() {
		l.print(message)
	}
}

func (l logger) print(message string) {
	fmt.Fprintln(l.step.Log(), strings.TrimRight(message, "\n"))
}

// status returns the action in a status line of kind, such as " • Preparing nodes 📦  ...";
// "" for any other message.
func status(message string) string {
	text, ok := strings.CutPrefix(strings.TrimSpace(message), "•")
	if !ok {
		return ""
	}
	words := strings.FieldsFunc(strings.TrimSuffix(text, "..."), func(r rune) bool {
		return unicode.IsSpace(r) || r > unicode.MaxLatin1 // an emoji
	})
	return strings.Join(words, " ")
}

var (
	// ErrNotFound is in the chain of Find's error if no cluster has the name.
	ErrNotFound = errors.New("no such cluster")
	// ErrNotOurs is in the chain of an error about a cluster, or a container with the name of a
	// node, that this checkout of podenv did not create and therefore leaves alone.
	ErrNotOurs = errors.New("not ours")
	// ErrInUse is in the chain of an error about a cluster that does not match the
	// configuration, but on which something runs.
	ErrInUse = errors.New("not recreated")
)

// outputLines is how many of a failed command's last lines an error shows.
const outputLines = 15

// remedies has messages of docker, kind and Kubernetes about problems of the host, and what
// the user can do about them. The first match counts.
var remedies = []struct{ message, remedy string }{
	{"unrecognized feature gate", "the node image's release does not know that gate: leave it out"},
	{"is already in use by container", "choose another name with --name"},
	{"no space left on device", remedy.ForDisk},
	{"unable to apply caps", "the container engine refuses privileged containers: see `podenv doctor`"},
	{"Cannot connect to the Docker daemon", "the container engine does not run: see `podenv doctor`"},
	{"failed to lock config file", "another program is changing the kubeconfig; if none is, remove the .lock file beside it"},
	{"could not find a log line that matches", "the node did not boot: its serial.log says why"},
	{"too many open files", "raise the kernel's limits: `sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288`"},
}

// explain adds to an error from kind the output of the failed command and, if the cause is
// known, what to do about it.
func explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if failed := exec.RunErrorForError(err); failed != nil {
		lines := strings.Split(strings.TrimSpace(string(failed.Output)), "\n")
		if out := strings.Join(lines[max(0, len(lines)-outputLines):], "\n"); out != "" {
			err = fmt.Errorf("%w\n%s", err, indent(out))
		}
		text += string(failed.Output)
	}
	if what := remedyFor(text); what != "" {
		return fmt.Errorf("%w\n%s", err, what)
	}
	return remedy.Explain(err)
}

// remedyFor returns what to do about the first known message in text; "" if there is none.
func remedyFor(text string) string {
	for _, r := range remedies {
		if strings.Contains(text, r.message) {
			return r.remedy
		}
	}
	return ""
}

// fatalToKubelets are the messages in remedies with which a kubelet does not start. Others in
// its log may be temporary.
var fatalToKubelets = []string{"too many open files", "no space left on device", "unrecognized feature gate"}

// nodeFailure returns the first line of the nodes' logs that says why a component does not start, with its
// remedy if there is one: a line of a kubelet that has one of fatalToKubelets, or the error with which a
// component of the control plane ended. It returns "" if there is none. kubeadm only reports a timeout.
func nodeFailure(logs string) string {
	for _, in := range []struct {
		files    string
		messages []string
	}{{"kubelet.log", fatalToKubelets}, {"pods/kube-system_*/*/*.log", []string{`"command failed"`}}} {
		files, _ := filepath.Glob(filepath.Join(logs, "*", in.files))
		for _, file := range files {
			text, _ := os.ReadFile(file) // one that cannot be read says nothing
			for line := range strings.Lines(string(text)) {
				if remedy.ContainsAny(line, in.messages...) {
					node, _, _ := strings.Cut(strings.TrimPrefix(file, logs+"/"), "/")
					return strings.TrimSpace(fmt.Sprintf("%s: %s\n  %s", node, strings.TrimSpace(line), remedyFor(line)))
				}
			}
		}
	}
	return ""
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
