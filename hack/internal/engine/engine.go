package engine

import (
	"context"
	"fmt"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/run"
)

// Engine is a container engine that serves and runs privileged containers.
type Engine struct{ info Info }

// Ensure returns the container engine of this host. It installs Docker if it is
// missing, and starts it if it does not serve. Docker keeps running after this
// process has ended. ErrNoEngine or ErrPrivileged is in the chain of an error that
// says what the user can do about the host.
func Ensure(ctx context.Context, l layout.Layout, step *progress.Step) (*Engine, error) {
	h := thisHost()
	info, started, err := h.ensure(ctx, l, step)
	if err != nil {
		return nil, err
	}
	if err := h.restoreRuntime(ctx, l, info); err != nil {
		return nil, err
	}
	cached, err := cachedProbe(ctx, l, h.daemonKey(info), step)
	if err != nil {
		return nil, remedy.Explain(h.explainRefusal(info, err, h.offerRuntime(ctx, l, info)))
	}
	if cached && !started {
		step.Cached("Docker " + info.ServerVersion + " serves")
	}
	return &Engine{info}, nil
}

// Find returns the container engine that serves now. It installs, starts and tries
// nothing. ErrNoEngine is in the chain of its errors.
func Find(ctx context.Context) (*Engine, error) {
	info, err := queryInfo(ctx)
	if err != nil {
		return nil, err
	}
	return &Engine{info}, nil
}

// Docker prepares the docker command with args.
func (e *Engine) Docker(ctx context.Context, args ...string) *run.Cmd {
	return run.Command(ctx, "docker", args...)
}

// Info is what the engine said about itself.
func (e *Engine) Info() Info { return e.info }

// Privileged starts a privileged container and a privileged process in it, as kind
// does, and returns an error with ErrPrivileged in its chain where one fails.
// Nothing stays behind in the engine.
func (e *Engine) Privileged(ctx context.Context, l layout.Layout) error {
	return remedy.Explain(thisHost().explainRefusal(e.info, probe(ctx, l, nil), ""))
}

// ensure makes the engine serve, and reports whether it had to start it.
func (h *host) ensure(ctx context.Context, l layout.Layout, step *progress.Step) (info Info, started bool, err error) {
	step.Now("asking Docker")
	info, err = queryInfo(ctx)
	if err == nil {
		return info, false, nil
	}
	if !CanStart(err) {
		return Info{}, false, err
	}
	if err := h.installDocker(ctx, step); err != nil {
		return Info{}, false, fmt.Errorf("%w: %w", ErrNoEngine, err)
	}
	if err := h.start(ctx, l, step); err != nil {
		return Info{}, false, err
	}
	info, err = queryInfo(ctx)
	return info, true, err
}
