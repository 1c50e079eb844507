package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

// How many lines at the end of the daemon's log an error shows, and how many are searched for the cause.
const (
	logShown    = 15
	logSearched = 200
)

// startDaemon starts dockerd in a session of its own, so that neither Ctrl-C nor
// the end of this process reaches it, and waits until it serves.
func (h *host) startDaemon(ctx context.Context, flags []string) error {
	if err := h.clearStale(); err != nil {
		return err
	}
	if err := delegate(h.cgroup); err != nil {
		return fmt.Errorf("%w: making room for containers in %s: %w", ErrNoEngine, h.cgroup, err)
	}
	logPath := filepath.Join(h.state, "dockerd.log")
	cmd, err := h.launch(logPath, flags)
	if err != nil {
		return fmt.Errorf("%w: starting dockerd: %w", ErrNoEngine, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	if err := h.await(ctx, exited); err != nil {
		shown := strings.ReplaceAll(tail(logPath, logShown), "\n", "\n  ")
		err = fmt.Errorf("%w; its log, %s, ends with\n  %s", err, logPath, shown)
		return daemonError(err, strings.Join(cmd.Args, " "), remedyOf(tail(logPath, logSearched)))
	}
	return nil
}

// launch starts dockerd with its output in the file at logPath. Like everything that a running
// daemon needs, that file is outside of any checkout.
func (h *host) launch(logPath string, flags []string) (*exec.Cmd, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(h.lookPath("dockerd"), flags...)
	cmd.Dir = "/"
	cmd.Env = h.daemonEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	// The daemon must not keep pipes open that this process inherited: make or CI may wait
	// until they are closed. Kernels before 5.11 lack the flag; there it keeps them open.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	return cmd, cmd.Start()
}

// daemonEnv returns the environment variables that the daemon gets. It must not get TMPDIR, for
// example: containerd writes there for each exec, maybe after the directory was deleted.
func (h *host) daemonEnv() []string {
	env := []string{"PATH=" + h.path()}
	for _, name := range []string{"HOME", "DOCKER_RAMDISK", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// await polls until the daemon serves, or has exited, or startTimeout is over. An error that
// wraps ErrNoEngine means that the daemon serves, but not this user.
func (h *host) await(ctx context.Context, exited <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, h.startTimeout)
	defer cancel()
	for {
		_, err := queryInfo(ctx)
		if err == nil {
			return nil
		}
		if !CanStart(err) && ctx.Err() == nil {
			return err
		}
		select {
		case err := <-exited:
			return fmt.Errorf("ended before it served (%v)", err)
		case <-ctx.Done():
			return fmt.Errorf("does not serve after %s: %w", h.startTimeout, ctx.Err())
		case <-time.After(poll.Interval):
		}
	}
}

// tail returns the last lines of a file, or why it cannot be read.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// pidFiles are the PID files of dockerd and its containerd, below h.run, and the processes' names.
var pidFiles = map[string]string{
	"docker.pid":                       "dockerd",
	"docker/containerd/containerd.pid": "containerd",
}

// clearStale removes the PID files of processes that are gone. If another process has the PID
// by now, dockerd would think that a dockerd runs, and refuse to start.
func (h *host) clearStale() error {
	for name, process := range pidFiles {
		path := filepath.Join(h.run, name)
		if pid := readPID(path); pid > 0 && processName(pid) != process {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("removing a stale pid file: %w", err)
			}
		}
	}
	return nil
}

// daemonPID returns the PID of the daemon on this host, or 0.
func (h *host) daemonPID() int {
	if pid := readPID(filepath.Join(h.run, "docker.pid")); pid > 0 && processName(pid) == "dockerd" {
		return pid
	}
	return 0
}

func readPID(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

func processName(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(data))
}

// delegate prepares the cgroup at root for the daemon's containers. In cgroup v2, a cgroup other
// than the machine's root can enable controllers for its children only if it has no processes
// ("no internal process constraint", cgroups(7)), so delegate moves them to a child cgroup. This
// is needed if the host is a container whose init does not do it. Elsewhere nothing changes.
func delegate(root string) error {
	// The machine's root cgroup has no type, and cgroup v1 has no such file.
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	if len(strings.Fields(string(enabled))) == len(strings.Fields(string(controllers))) {
		return nil
	}
	leaf := filepath.Join(root, "init")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	processes, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(processes)) {
		err := writeCgroup(leaf, "cgroup.procs", pid)
		if err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
			return fmt.Errorf("moving process %s to %s: %w", pid, leaf, err)
		}
	}
	for _, name := range strings.Fields(string(controllers)) {
		if err := writeCgroup(root, "cgroup.subtree_control", "+"+name); err != nil {
			return fmt.Errorf("passing the controller %s on: %w", name, err)
		}
	}
	return nil
}

// writeCgroup writes one request to a file of a cgroup. Each request needs its own write.
func writeCgroup(cgroup, file, request string) error {
	f, err := os.OpenFile(filepath.Join(cgroup, file), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(request + "\n")
	return errors.Join(err, f.Close())
}

// start starts the local daemon, with systemd if that is the init process, else by itself.
func (h *host) start(ctx context.Context, l layout.Layout, step *progress.Step) error {
	if h.systemd {
		return h.startService(ctx, step)
	}
	if h.uid != 0 {
		return remedy.New(
			fmt.Errorf("%w: there is no systemd to start Docker, and only root can do it without", ErrNoEngine),
			"run podenv as root: `sudo env PATH=\"$PATH\" make up`",
		)
	}
	// Two podenv processes, even of different checkouts, must not start two daemons.
	unlock, err := lockfile.Lock(ctx, filepath.Join(h.state, "lock"), "that starts dockerd", step)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := queryInfo(ctx); err == nil {
		return nil // another podenv was faster
	}
	if pid := h.daemonPID(); pid > 0 {
		step.Now("waiting for the dockerd that is starting")
		return daemonError(h.await(ctx, nil), fmt.Sprintf("dockerd, process %d,", pid), "stop it, and try again")
	}
	flags, err := h.daemonFlags(ctx, l)
	if err != nil {
		return err
	}
	step.Now("starting dockerd")
	return h.startDaemon(ctx, flags)
}

func (h *host) startService(ctx context.Context, step *progress.Step) error {
	const hint = "see `journalctl -u docker -n 50`"
	step.Now("starting docker.service")
	command := debian.AsRoot(h.uid, "systemctl", "start", "docker")
	if err := run.Command(ctx, command[0], command[1:]...).Log(step.Log()).Run(); err != nil {
		return remedy.New(fmt.Errorf("%w: %w", ErrNoEngine, err), hint)
	}
	return daemonError(h.await(ctx, nil), "docker.service", hint)
}

// daemonError adds ErrNoEngine, the name of the daemon and a remedy to an error of await. An
// error that wraps ErrNoEngine has all that.
func daemonError(err error, daemon, hint string) error {
	if err == nil || errors.Is(err, ErrNoEngine) {
		return err
	}
	return remedy.New(fmt.Errorf("%w: %s %w", ErrNoEngine, daemon, err), hint)
}

// installDocker installs Debian's Docker if the daemon or its command is missing.
func (h *host) installDocker(ctx context.Context, step *progress.Step) error {
	if h.lookPath("dockerd") == "" {
		names := []string{"docker.io", "iptables"}
		if enabled, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled"); bytes.HasPrefix(enabled, []byte("Y")) {
			// dockerd uses AppArmor if the kernel has it, and cannot load its profile without the parser.
			names = append(names, "apparmor")
		}
		if err := h.packages.EnsureInstalled(ctx, step, names...); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return h.packages.EnsureInstalled(ctx, step, "docker-cli") // a separate package since Debian 13
	}
	return nil
}
