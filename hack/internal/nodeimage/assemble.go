package nodeimage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/progress"
)

// storeDir is containerd's root directory while the node image is built. It is a volume,
// because overlayfs snapshots do not work on the container's own overlayfs.
const storeDir = "/run/podenv-store"

// assemble builds the image ref in a container of the image base. It adds files, and imports
// and unpacks the images of archives, so that a node can start them at once.
func assemble(ctx context.Context, e *engine.Engine, base, ref, version string, files []image.File, archives []string, step *progress.Step) error {
	_, hash, _ := strings.Cut(ref, ":")
	name := "podenv-node-image-" + hash
	remove := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second) // also after Ctrl-C
		defer cancel()
		_ = e.Docker(ctx, "rm", "--force", "--volumes", name).Run()
	}
	remove() // what a killed run left
	defer remove()
	c := container{engine: e, name: name, step: step}
	step.Now("starting a container from %s", base)
	err := e.Docker(ctx, "run", "--detach", "--privileged", "--network=none", "--name="+name,
		"--mount=type=volume,destination="+storeDir, "--entrypoint=sleep", base, "infinity").Log(step.Log()).Run()
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.copy(gctx, files) })
	g.Go(func() error { return c.importImages(gctx, archives) })
	if err := g.Wait(); err != nil {
		return err
	}
	step.Now("saving %s", ref)
	return c.commit(ctx, ref, version)
}

// container is a container in which a node image is built.
type container struct {
	engine *engine.Engine
	name   string
	step   *progress.Step
}

// exec runs a command in the container.
func (c container) exec(ctx context.Context, stdin io.Reader, argv ...string) error {
	args := append([]string{"exec", "--interactive", c.name}, argv...)
	return c.engine.Docker(ctx, args...).Stdin(stdin).Log(c.step.Log()).Run()
}

// copy adds files to the container's root file system.
func (c container) copy(ctx context.Context, files []image.File) error {
	tar := image.Reader(image.WriteTar(files, "etc", "etc/containerd", "kind", "usr", "usr/bin"))
	defer tar.Close()
	return c.engine.Docker(ctx, "cp", "-", c.name+":/").Stdin(tar).Log(c.step.Log()).Run()
}

// importImages imports and unpacks the images of archives into containerd's store. It removes
// the packed layers, as containerd itself does with discard_unpacked_layers.
func (c container) importImages(ctx context.Context, archives []string) error {
	if err := c.exec(ctx, strings.NewReader(startContainerd), "sh", "-eu"); err != nil {
		return fmt.Errorf("starting containerd: %w", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, archive := range archives {
		g.Go(func() error {
			tags, err := image.Tags(archive)
			if err != nil {
				return err
			}
			c.step.Now("importing %s", strings.Join(tags, ", "))
			f, err := os.Open(archive)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := c.exec(gctx, f, "ctr", "--namespace=k8s.io", "images", "import", "--snapshotter=overlayfs", "-"); err != nil {
				return fmt.Errorf("importing %s: %w", archive, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := c.exec(ctx, strings.NewReader(finishImport), "bash", "-eu"); err != nil {
		return fmt.Errorf("keeping containerd's images: %w", err)
	}
	return nil
}

// startContainerd starts containerd on the store and returns when it serves.
const startContainerd = `
mkdir -p /run/containerd
printf 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' >/run/import.toml
containerd --config /run/import.toml --root ` + storeDir + ` >/run/containerd.log 2>&1 &
echo $! >/run/containerd.pid
tries=0
until [ -S /run/containerd/containerd.sock ] && ctr version >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ "$tries" -gt 300 ] || ! readlink -e "/proc/$(cat /run/containerd.pid)/exe" >/dev/null; then
		cat /run/containerd.log >&2
		exit 1
	fi
	sleep 0.1
done
`

// finishImport removes the packed layers, stops containerd and moves its store to where a
// node's containerd looks for it.
const finishImport = `
ctr="ctr --namespace=k8s.io"
$ctr images ls | awk 'NR > 1 { print $3 }' | sort -u |
	while read -r manifest; do $ctr content get "$manifest" | jq -r '.layers[].digest'; done |
	sort -u | xargs $ctr content rm >/dev/null
# containerd deletes the layers' files when it collects garbage, and removing an image makes it do so.
$ctr images tag "$($ctr images ls -q | head -n 1)" podenv.dev/garbage:1 >/dev/null
$ctr images rm --sync podenv.dev/garbage:1 >/dev/null
pid=$(cat /run/containerd.pid)
kill "$pid"
# Nobody waits for it: once it has ended it stays as a zombie, which has no exe.
tries=0
while readlink -e "/proc/$pid/exe" >/dev/null; do
	tries=$((tries + 1))
	if [ "$tries" -gt 300 ]; then
		echo "containerd does not end" >&2
		exit 1
	fi
	sleep 0.1
done
rm -rf /var/lib/containerd
cp -a ` + storeDir + ` /var/lib/containerd
rm -rf /var/lib/containerd/tmpmounts /run/containerd /run/containerd.* /run/import.toml
`

// commit saves the container as the image ref.
func (c container) commit(ctx context.Context, ref, version string) error {
	// docker commit pauses a running container, which needs the freezer cgroup.
	if err := c.engine.Docker(ctx, "kill", c.name).Log(c.step.Log()).Run(); err != nil {
		return err
	}
	args := []string{"commit"}
	entrypoint, err := json.Marshal(nodeConfig.Entrypoint)
	if err != nil {
		return err
	}
	// The rest of nodeConfig comes with the base image.
	for _, change := range []string{"ENTRYPOINT " + string(entrypoint), "CMD []", "LABEL " + VersionLabel + "=" + version} {
		args = append(args, "--change", change)
	}
	return c.engine.Docker(ctx, append(args, c.name, ref)...).Log(c.step.Log()).Run()
}
