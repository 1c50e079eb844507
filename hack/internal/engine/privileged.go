package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// cleanTimeout is how long taking the probe's container away may take.
const cleanTimeout = 20 * time.Second

// Report is what the probe (package probe) found out inside a privileged container.
type Report struct {
	// OOMScoreAdj: a process may lower its own oom_score_adj, which takes
	// CAP_SYS_RESOURCE.
	OOMScoreAdj bool `json:"oomScoreAdj"`
}

func (r Report) bounded() bool { return !r.OOMScoreAdj }

// cachedProbe is probe, once per daemon: its result holds until that daemon ends.
func cachedProbe(ctx context.Context, l layout.Layout, daemon string, step *progress.Step) (report Report, cached bool, err error) {
	path := filepath.Join(l.Cache("engine"), daemon+".json")
	if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &report) == nil {
		return report, true, nil
	}
	if report, err = probe(ctx, l, step); err != nil {
		return Report{}, false, err
	}
	data, err := json.Marshal(report)
	if err != nil {
		return Report{}, false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Report{}, false, err
	}
	return report, false, renameio.WriteFile(path, data, 0o644)
}

// daemonKey names one life of one daemon.
func (h *host) daemonKey(info Info) string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	pid := h.daemonPID()
	return digest.Of(info.ID, info.ServerVersion, info.DefaultRuntime, string(boot), fmt.Sprint(pid), startTime(pid))[:16]
}

// probe runs a privileged container with a tiny image of its own, and in it a
// privileged process. An error has ErrPrivileged in its chain where the engine
// refused one of the two.
func probe(ctx context.Context, l layout.Layout, step *progress.Step) (Report, error) {
	step.Now("trying a privileged container")
	binary, err := compile(ctx, l, "./hack/internal/engine/probe")
	if err != nil {
		return Report{}, fmt.Errorf("building the probe for privileged containers: %w", err)
	}
	name := "podenv-probe-" + strings.ToLower(rand.Text()[:8])
	ref := "podenv/probe:" + name
	var archive bytes.Buffer
	if err := writeProbeImage(&archive, ref, binary); err != nil {
		return Report{}, fmt.Errorf("putting the probe into an image: %w", err)
	}
	docker := func(ctx context.Context, args ...string) *run.Cmd {
		return run.Command(ctx, "docker", args...).Log(step.Log())
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		_ = docker(ctx, "rm", "--force", "--volumes", name).Run()
		_ = docker(ctx, "rmi", "--force", ref).Run()
	}()
	if err := docker(ctx, "load").Stdin(&archive).Run(); err != nil {
		return Report{}, err
	}
	// The flags are kind's.
	err = docker(ctx, "run", "--pull=never", "--detach", "--name", name, "--privileged", "--cgroupns=private",
		"--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--network=none", ref, "wait").Run()
	if err != nil {
		return Report{}, fmt.Errorf("%w: %w", ErrPrivileged, err)
	}
	out, err := docker(ctx, "exec", "--privileged", name, "/probe", "report").Output()
	if err != nil {
		return Report{}, fmt.Errorf("%w: %w", ErrPrivileged, err)
	}
	var report Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return Report{}, fmt.Errorf("reading the probe's report %q: %w", out, err)
	}
	return report, nil
}

// writeProbeImage writes the archive of an image with one file, the static binary /probe.
func writeProbeImage(w io.Writer, ref string, binary []byte) error {
	layer, err := image.FilesLayer([]image.File{{Path: "/probe", Mode: 0o755, Data: binary}})
	if err != nil {
		return err
	}
	img, err := image.New(v1.Config{Entrypoint: []string{"/probe"}}, layer)
	if err != nil {
		return err
	}
	return image.Write(w, ref, img)
}
