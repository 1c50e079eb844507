package cluster

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
)

// If this test binary is started as docker, it is a fake docker with its state in the folder
// $FAKE_DOCKER.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "docker" {
		if err := (fakeDocker{os.Getenv("FAKE_DOCKER")}).run(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeDocker is the state of a container engine: files in a folder.
type fakeDocker struct{ dir string }

// newFakeDocker puts a fake docker, which has a node image, first in PATH. It also returns an
// empty repository.
func newFakeDocker(t *testing.T) (fakeDocker, layout.Layout, *engine.Engine) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := fakeDocker{t.TempDir()}
	for _, dir := range []string{"bin", "containers", "networks", "images", "fail"} {
		if err := os.Mkdir(filepath.Join(f.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(f.dir, "bin/docker")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(f.dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("FAKE_DOCKER", f.dir)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // for the lock of the cluster
	f.write(t, "images/podenv-node", "sha256:1111")
	return f, layout.Layout{Root: t.TempDir()}, &engine.Engine{}
}

func (f fakeDocker) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// add creates a container directly, without kind and this package.
func (f fakeDocker) add(t testing.TB, c fakeContainer) {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, "containers/"+c.Name, string(data))
}

// names lists the objects of a kind: containers or networks.
func (f fakeDocker) names(t testing.TB, kind string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.dir, kind))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

type fakeContainer struct {
	Name    string
	Labels  map[string]string
	Mounts  []string
	Image   string
	Network string
	Files   map[string]string
	Stopped bool
}

func (c fakeContainer) ID() string               { return c.Name }
func (c fakeContainer) Names() string            { return c.Name }
func (c fakeContainer) Label(name string) string { return c.Labels[name] }

// fakeNode returns a node as kind creates it, marked as ours or not.
func fakeNode(cluster, name, role string, ours bool) fakeContainer {
	c := fakeContainer{
		Name:    name,
		Labels:  map[string]string{labelCluster: cluster, labelRole: role},
		Image:   "sha256:1111",
		Network: "kind-" + cluster,
	}
	if ours {
		c.Mounts = []string{marker}
	}
	return c
}

func (f fakeDocker) run(args []string) error {
	verb, rest := args[0], args[1:]
	if verb == "image" || verb == "network" {
		verb, rest = verb+" "+rest[0], rest[1:]
	}
	if message, err := os.ReadFile(filepath.Join(f.dir, "fail", verb)); err == nil && !slices.Contains(rest, "--rm") {
		return errors.New(string(message))
	}
	switch verb {
	case "info":
		return f.info(rest)
	case "ps":
		return f.ps(rest)
	case "inspect":
		return f.inspect(rest)
	case "run":
		return f.runContainer(rest)
	case "rm":
		return f.remove(rest)
	case "logs":
		fmt.Println("Reached target Multi-User System.")
		return nil
	case "start":
		c, err := f.container(rest[0])
		if err != nil {
			return err
		}
		c.Stopped = false
		return f.save(c)
	case "cp":
		return f.copy(rest[0], rest[1])
	case "exec":
		return f.exec(rest)
	case "image inspect":
		return f.print("images", rest[len(rest)-1], "No such image")
	case "network ls":
		return f.networks(rest)
	case "network create":
		name := rest[len(rest)-1]
		if _, err := os.Stat(filepath.Join(f.dir, "networks", name)); err == nil {
			name += " again" // docker creates another network with that name
		}
		return os.WriteFile(filepath.Join(f.dir, "networks", name), []byte(strings.Join(rest, " ")), 0o644)
	case "network rm":
		return os.Remove(filepath.Join(f.dir, "networks", rest[0]))
	case "network inspect":
		fmt.Println("0")
		return nil
	}
	return fmt.Errorf("the fake docker has no %q", args)
}

func (f fakeDocker) print(kind, name, missing string) error {
	data, err := os.ReadFile(filepath.Join(f.dir, kind, name))
	if err != nil {
		return fmt.Errorf("Error: %s: %s", missing, name) //nolint:staticcheck // docker's words
	}
	fmt.Println(string(data))
	return nil
}

func (f fakeDocker) info(args []string) error {
	format := args[len(args)-1]
	for part, out := range map[string]string{
		"{{json .}}":      `{"ServerVersion":"20.10.24","CgroupVersion":"2","CgroupDriver":"systemd","MemoryLimit":true,"PidsLimit":true,"CPUShares":true}`,
		".SecurityOption": `[]`,
		".Driver}}":       `overlay2`,
		".DriverStatus":   `[["Backing Filesystem","extfs"]]`,
	} {
		if strings.Contains(format, part) {
			fmt.Println(out)
			return nil
		}
	}
	fmt.Println("a fake")
	return nil
}

func (f fakeDocker) containers() []fakeContainer {
	files, _ := filepath.Glob(filepath.Join(f.dir, "containers/*"))
	var out []fakeContainer
	for _, file := range files {
		if c, err := f.container(filepath.Base(file)); err == nil {
			out = append(out, c)
		}
	}
	return out
}

func (f fakeDocker) container(name string) (c fakeContainer, err error) {
	data, err := os.ReadFile(filepath.Join(f.dir, "containers", name))
	if err != nil {
		return c, fmt.Errorf("Error: No such container: %s", name) //nolint:staticcheck // docker's words
	}
	return c, json.Unmarshal(data, &c)
}

// save replaces the file atomically, because processes of the fake run in parallel.
func (f fakeDocker) save(c fakeContainer) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.dir, "save")
	if err != nil {
		return err
	}
	if _, err := tmp.Write(data); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(f.dir, "containers", c.Name))
}

// value returns the value of an option, given as --name=value or --name value.
func value(args []string, name string) (values []string) {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, name+"="); ok {
			values = append(values, v)
		} else if arg == name && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return values
}

func (f fakeDocker) ps(args []string) error {
	format := "{{.ID}}"
	if given := value(args, "--format"); len(given) > 0 {
		format = given[0]
	}
	t, err := template.New("").Parse(format + "\n")
	if err != nil {
		return err
	}
	for _, c := range f.containers() {
		matches := true
		for _, filter := range value(args, "--filter") {
			kind, want, _ := strings.Cut(filter, "=")
			key, val, _ := strings.Cut(want, "=")
			named := kind == "name" && regexp.MustCompile(want).MatchString(c.Name)
			matches = matches && (named || kind == "network" && c.Network == want || kind == "label" && c.Labels[key] == val)
		}
		if matches {
			if err := t.Execute(os.Stdout, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f fakeDocker) inspect(args []string) error {
	switch {
	case args[0] == "--type=image":
		return f.print("images", args[1], "No such image")
	case args[0] == "--type=container":
		all := []any{}
		for _, name := range args[1:] {
			c, err := f.container(name)
			if err != nil {
				return err
			}
			mounts := []any{}
			for _, m := range c.Mounts {
				mounts = append(mounts, map[string]string{"Destination": m})
			}
			all = append(all, map[string]any{
				"Name": "/" + c.Name, "Image": c.Image, "Mounts": mounts,
				"State": map[string]bool{"Running": !c.Stopped}, "Config": map[string]any{"Labels": c.Labels},
				"NetworkSettings": map[string]any{"Networks": map[string]any{c.Network: map[string]any{}}},
			})
		}
		return json.NewEncoder(os.Stdout).Encode(all)
	case strings.Contains(args[1], labelRole):
		c, err := f.container(args[2])
		fmt.Println(c.Labels[labelRole])
		return err
	case strings.Contains(args[1], "IPAddress"):
		fmt.Println("192.0.2.1,")
		return nil
	}
	return fmt.Errorf("the fake docker has no inspect %q", args)
}

func (f fakeDocker) runContainer(args []string) error {
	if slices.Contains(args, "--rm") {
		return f.kubelet()
	}
	c := fakeContainer{Name: value(args, "--name")[0], Labels: make(map[string]string), Image: "sha256:1111", Network: value(args, "--net")[0]}
	for _, label := range value(args, "--label") {
		key, val, _ := strings.Cut(label, "=")
		c.Labels[key] = val
	}
	for _, volume := range value(args, "--volume") {
		parts := strings.Split(volume, ":")
		c.Mounts = append(c.Mounts, parts[min(1, len(parts)-1)])
	}
	return f.save(c)
}

// kubelet is the node image's kubelet, started without a configuration.
func (f fakeDocker) kubelet() error {
	says, err := os.ReadFile(filepath.Join(f.dir, "fail/kubelet"))
	if err != nil {
		return errors.New("failed to load kubelet config file")
	}
	return errors.New(string(says))
}

func (f fakeDocker) remove(args []string) error {
	for _, name := range args {
		if strings.HasPrefix(name, "-") {
			continue
		}
		if err := os.Remove(filepath.Join(f.dir, "containers", name)); err != nil {
			return err
		}
	}
	return nil
}

func (f fakeDocker) copy(from, to string) error {
	if node, _, ok := strings.Cut(to, ":"); ok && from == "-" {
		c, err := f.container(node)
		if err != nil {
			return err
		}
		c.Files = map[string]string{}
		for tr := tar.NewReader(os.Stdin); ; {
			hdr, err := tr.Next()
			if err == io.EOF {
				return f.save(c)
			}
			data, errRead := io.ReadAll(tr)
			if err := errors.Join(err, errRead); err != nil {
				return err
			}
			c.Files[fmt.Sprintf("/%s %o", hdr.Name, hdr.Mode)] = string(data)
		}
	}
	if node, path, ok := strings.Cut(to, ":"); ok {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		c, err := f.container(node)
		if err != nil {
			return err
		}
		c.Files = map[string]string{path: string(data)}
		return f.save(c)
	}
	node, path, _ := strings.Cut(from, ":")
	c, err := f.container(node)
	if err != nil {
		return err
	}
	text, ok := c.Files[path]
	if !ok {
		return fmt.Errorf("Error: Could not find the file %s in container %s", path, node) //nolint:staticcheck // docker's words
	}
	w := tar.NewWriter(os.Stdout)
	if err := w.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return w.Close()
}

// exec blocks in kubeadm until the node is deleted, because the tests stop there. It also knows
// the commands that kind runs before.
func (f fakeDocker) exec(args []string) error {
	args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	node, command := args[0], args[1:]
	switch strings.Join(command[:min(2, len(command))], " ") {
	case "cat /kind/version":
		fmt.Println("v1.33.13")
		return nil
	case "mkdir /kind", "cp /dev/stdin":
		return nil
	case "containerd config":
		fmt.Println("version = 3\n[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'overlayfs'")
		return nil
	case "ctr images":
		f.touch("ctr-runs")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "kubeadm init":
		f.touch("kubeadm-runs")
		for {
			if _, err := f.container(node); err != nil {
				return errors.New("exit status 137")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return fmt.Errorf("the fake docker executes no %q", command)
}

func (f fakeDocker) touch(name string) {
	if err := os.WriteFile(filepath.Join(f.dir, name), nil, 0o644); err != nil {
		panic(err)
	}
}

func (f fakeDocker) networks(args []string) error {
	files, _ := filepath.Glob(filepath.Join(f.dir, "networks/*"))
	for _, file := range files {
		matches := true
		for _, filter := range value(args, "--filter") {
			pattern, ok := strings.CutPrefix(filter, "name=")
			if !ok {
				return fmt.Errorf("the fake docker has no filter %q", filter)
			}
			found, err := regexp.MatchString(pattern, filepath.Base(file))
			if err != nil {
				return err
			}
			matches = matches && found
		}
		if matches {
			fmt.Println(filepath.Base(file))
		}
	}
	return nil
}

// addCluster adds a control plane and a worker, with a record.
func (f fakeDocker) addCluster(t testing.TB, r *record) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	node := fakeNode("podenv", "podenv-control-plane", "control-plane", true)
	node.Files = map[string]string{recordPath: string(data)}
	f.add(t, node)
	f.add(t, fakeNode("podenv", "podenv-worker", "worker", true))
}
