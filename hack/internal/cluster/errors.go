package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"

	"podenv.dev/hack/internal/remedy"
)

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
	{"port is already allocated", "another process has taken the API server's port since it was chosen: run it again"},
	{"address already in use", "another process has taken the API server's port since it was chosen: run it again"},
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
	if remedy := remedyFor(text); remedy != "" {
		return fmt.Errorf("%w\n%s", err, remedy)
	}
	return err
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

// kubeletFailure returns the first line of the kubelets' logs that has one of fatalToKubelets,
// with its remedy; "" if there is none. kubeadm only reports a timeout.
func kubeletFailure(logs string) string {
	files, _ := filepath.Glob(filepath.Join(logs, "*", "kubelet.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file) // one that cannot be read says nothing
		for line := range strings.Lines(string(text)) {
			if remedy.ContainsAny(line, fatalToKubelets...) {
				return fmt.Sprintf("%s: %s\n  %s", filepath.Base(filepath.Dir(file)), strings.TrimSpace(line), remedyFor(line))
			}
		}
	}
	return ""
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
