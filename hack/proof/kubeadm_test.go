package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/mod/semver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/examples"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/packages"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// kubeadmCluster is upgraded by kubeadm.
var kubeadmCluster = layout.MustFind().UniqueName("podenv-kubeadm")

// kubeadmTimeout limits what waits for a node or for pods after a step.
const kubeadmTimeout = 4 * time.Minute

// kubeadmUpgrade takes a cluster of the stock release of the minor before to the series, and back, with the
// commands that the Kubernetes documentation gives to operators:
//
//   - https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade/
//   - https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/
//   - https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/#restoring-an-etcd-cluster
//
// Images come from a registry, programs from packages. The commands are interrupted, and go on when they are
// run again.
func kubeadmUpgrade(c *check) error { return upgradeByKubeadm(c, steps.Series.Name) }

// kubeadmAtlas goes on from the series through all newer minors, before it goes back. Interrupted, it keeps
// its cluster, and goes on with the step that it was at when it is run again.
func kubeadmAtlas(c *check) error {
	return upgradeByKubeadm(c, append([]string{steps.Series.Name}, steps.Series.Newer(repo)...)...)
}

// upgradeByKubeadm upgrades a cluster to each of minors, and goes back.
func upgradeByKubeadm(c *check, minors ...string) (err error) {
	if semver.Compare(steps.Series.Name, "v1.31") < 0 {
		return skipped("nodes have no crictl, which kubeadm calls up to v1.30")
	}
	older := steps.Series.Older(repo, 1)
	k, err := newKubeadmProof(c, older[0])
	if err != nil {
		return err
	}
	if len(minors) > 1 {
		k.journalFile = filepath.Join(repo.Cache("proof"), kubeadmCluster+".json")
	}
	defer func() {
		if k.journalFile != "" && (c.ctx.Err() != nil || err != nil || c.Failed()) {
			err = errors.Join(err, fmt.Errorf("the same command goes on from here; after rm %s it begins anew", k.journalFile))
			return
		}
		clean, cancel := k.whatever()
		defer cancel()
		err = errors.Join(err, k.remove(clean))
	}()
	if err := k.resume(); err != nil {
		return err
	}
	if k.cluster == nil {
		if err := k.create(); err != nil {
			return err
		}
	}
	if k.load, err = k.newLoad(); err != nil {
		return err
	}
	for i, minor := range minors {
		if err := k.prepare(minor); err != nil {
			return err
		}
		if i == 0 && !k.walk(
			step{"the stock release refuses the field", k.refused},
			step{"etcd's snapshot is saved", k.save},
		) {
			return nil
		}
		k.load.files = i > 0
		during := "" // a stock kubelet leaves the variable empty
		if i > 0 {
			during = fromFileValue
		}
		if !k.walk(
			step{"kubeadm's configuration names the registry and the gates", k.configure},
			step{"a package of kubeadm that is half installed is installed again", func() error { return k.installKilled(k.server, "kubeadm") }},
			step{"kubeadm upgrade plan shows the version", k.plan},
			step{"kubeadm upgrade apply without a registry changes nothing", k.applyWithoutRegistry},
			step{"kubeadm upgrade apply on a full disk changes nothing", k.applyOnFullDisk},
			step{"kubeadm upgrade apply is killed", k.applyKilled},
			step{"kubeadm upgrade apply goes on, and the node reboots", k.applyRebooted},
			step{"kubeadm upgrade apply goes on, and upgrades the control plane", k.upgradeApply},
			step{"the kubelet of the minor before runs pods", func() error { return k.expectValue(during) }},
			step{"a package of the control plane's kubelet that is half installed is installed again", func() error { return k.installKilled(k.server, "kubelet") }},
			step{"the kubelet of the control plane is upgraded", func() error { return k.upgradeKubelet(k.server) }},
			step{"kubeadm upgrade node is killed, and goes on", k.nodeKilled},
			step{"the worker reboots before it has its kubelet", func() error { return k.reboot(k.worker) }},
			step{"a package of the kubelet that is half installed is installed again", func() error { return k.installKilled(k.worker, "kubelet") }},
			step{"the kubelet of the worker is upgraded", func() error { return k.upgradeKubelet(k.worker) }},
			step{"kubelets get the gates", k.configureKubelets},
		) {
			return nil
		}
		k.load.takeFiles()
		if !k.walk(
			step{"a node reboots", func() error { return k.reboot(k.worker) }},
			step{"the features work", k.examples},
			step{"objects that use the features are stored", k.store},
			step{"what was stored before is as it was", k.kept},
			step{"pods of the load with env files ended meanwhile", func() error { return k.load.worked(k.ctx) }},
		) {
			return nil
		}
	}
	k.to, k.load.files, k.Features = nil, false, ""
	k.walk(
		step{"stock programs and etcd's snapshot are the way back", k.back},
		step{"the stock release refuses the field again", k.refused},
		step{"what was stored before is as it was, after the way back", k.kept},
	)
	return nil
}

// step is a step of an upgrade.
type step struct {
	name string
	do   func() error
}

// walk does steps, and reports whether all passed: each needs those before it.
func (k *kubeadmProof) walk(steps ...step) bool {
	for _, s := range steps {
		name := k.version() + ": " + s.name
		if slices.Contains(k.Passed, name) {
			continue // before an interruption
		}
		k.step.Now("%s", name)
		started := time.Now()
		passed := k.part(name, func() error { return k.load.during(k.ctx, s.do) })
		fmt.Fprintf(k.step.Log(), "%s: %s\n", name, time.Since(started).Round(time.Second))
		if !passed {
			return false
		}
		k.Passed = append(k.Passed, name)
		if err := k.record(); err != nil {
			k.Error(err)
			return false
		}
	}
	return true
}

// journal is what an interrupted proof has done.
type journal struct {
	Passed   []string          // steps
	Stored   string            // storedObjects, as the API server returns them
	Features string            // the same of featureObjects; empty before they are stored
	Kubelets map[string]string // their versions, by node
}

func (k *kubeadmProof) record() error {
	if k.journalFile == "" {
		return nil
	}
	data, err := json.Marshal(k.journal)
	if err != nil {
		return err
	}
	return renameio.WriteFile(k.journalFile, data, 0o644)
}

// resume finds the cluster of a proof that was interrupted, if there is one.
func (k *kubeadmProof) resume() error {
	if k.journalFile == "" {
		return nil
	}
	data, err := os.ReadFile(k.journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &k.journal)
	}
	if err != nil || k.Stored == "" { // it had no cluster yet
		return err
	}
	k.cluster, err = cluster.Find(k.ctx, repo, built.value.Engine, kubeadmCluster)
	if errors.Is(err, cluster.ErrNotFound) {
		k.journal = journal{}
		return nil
	}
	if err = errors.Join(err, k.findNodes()); err != nil {
		return err
	}
	for _, node := range []string{k.server, k.worker} { // what the interrupted step has left
		err = errors.Join(err, k.on(node, "pkill --signal=KILL --exact 'kubeadm|dpkg' || true"))
	}
	return errors.Join(err, k.docker("start", k.registry).Run(), k.findRegistry())
}

// kubeadmProof is a cluster that kubeadm upgrades.
type kubeadmProof struct {
	*check
	journal
	journalFile string             // empty for a proof that cannot be resumed
	old         *pipeline.Pipeline // the stock release of the minor before
	from        *pipeline.Result   // what it builds
	to          *pipeline.Result   // the version that the cluster is being upgraded to; nil for from
	gates       map[string]bool    // on in that version
	tools       string             // the folder of registry, etcdctl and etcdutl
	cluster     *cluster.Cluster
	load        *load
	server      string // the node of the control plane
	worker      string // the other node
	registry    string // the name of the registry's container, which nodes resolve
	address     string // its address in the cluster's network
}

// version is the version that the cluster is being upgraded to.
func (k *kubeadmProof) version() string {
	if k.to == nil {
		return k.from.Build.Version
	}
	return k.to.Build.Version
}

func newKubeadmProof(c *check, minor string) (*kubeadmProof, error) {
	s, err := series.Load(repo, minor)
	if err != nil {
		return nil, err
	}
	old := quiet()
	old.Series, old.Stock = s, true
	k := &kubeadmProof{check: c, old: old, tools: repo.Cache("programs"), registry: kubeadmCluster + "-registry"}
	c.step.Now("building the node image of %s without patches", minor)
	if k.from, err = old.NodeImage(c.ctx); err != nil {
		return nil, err
	}
	for tool, pkg := range map[string]string{
		"registry": "github.com/distribution/distribution/v3/cmd/registry", "etcdctl": "go.etcd.io/etcd/etcdctl/v3", "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
	} {
		dir := "hack/proof/tools/" + strings.Replace(tool, "etcdutl", "etcdctl", 1)
		if err := gobuild.Static(c.ctx, repo, gobuild.Program{Dir: dir, Package: pkg}, filepath.Join(k.tools, tool), c.step); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// create makes the cluster, and the registry in its network. It deletes what a killed proof has left: podenv
// does not see what kubeadm and packages change on a cluster.
func (k *kubeadmProof) create() (err error) {
	if k.cluster, err = cluster.Find(k.ctx, repo, built.value.Engine, kubeadmCluster); err == nil {
		err = k.remove(k.ctx)
	}
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return err
	}
	if k.cluster, err = k.old.Cluster(k.ctx, k.from, cluster.Config{Name: kubeadmCluster, Workers: 1, Recreate: true}); err != nil {
		return err
	}
	if err := k.findNodes(); err != nil {
		return err
	}
	k.Kubelets = map[string]string{k.server: k.version(), k.worker: k.version()}
	if err := k.startRegistry(); err != nil {
		return err
	}
	for _, node := range []string{k.server, k.worker} {
		if err := errors.Join(k.docker("exec", node, "mkdir", nodeFolder).Run(), k.on(node, useRegistry, k.registry)); err != nil {
			return err
		}
	}
	for _, tool := range []string{"etcdctl", "etcdutl"} {
		if err := k.docker("cp", filepath.Join(k.tools, tool), k.server+":/usr/local/bin/"+tool).Run(); err != nil {
			return err
		}
	}
	if err := k.copyPackages(k.from); err != nil {
		return err
	}
	// kind has written /etc/default/kubelet.
	for _, node := range []string{k.server, k.worker} {
		if err := k.on(node, `dpkg --install --force-confold "./$1"/*.deb`, k.version()); err != nil {
			return err
		}
	}
	if err := k.apply(storedObjects); err != nil {
		return err
	}
	if k.Stored, err = k.readStored(); err != nil {
		return err
	}
	return k.record()
}

func (k *kubeadmProof) findNodes() error {
	nodes, err := k.cluster.Nodes(k.ctx)
	if err == nil {
		k.server, k.worker = nodes[0].Name, nodes[1].Name
	}
	return err
}

// prepare publishes the images of a minor with its patches, and has its packages on the nodes.
func (k *kubeadmProof) prepare(minor string) error {
	s, err := series.Load(repo, minor)
	if err != nil {
		return err
	}
	p := quiet()
	p.Series = s
	if k.gates, err = p.Gates(); err != nil {
		return err
	}
	k.step.Now("building %s", minor)
	if k.to, err = p.NodeImage(k.ctx); err != nil {
		return err
	}
	k.step.Now("publishing the images of %s", minor)
	names := slices.DeleteFunc(slices.Clone(pipeline.PublishedNames), func(name string) bool { return name == "node" })
	images, err := p.Published(k.ctx, []string{"linux/" + runtime.GOARCH}, names)
	if err != nil {
		return err
	}
	if _, err := (publish.Registry{Path: k.address + ":5000/kubernetes"}).Push(k.ctx, images, k.step); err != nil {
		return err
	}
	return k.copyPackages(k.to)
}

// copyPackages has the packages of r on the nodes, in a folder called by the version.
func (k *kubeadmProof) copyPackages(r *pipeline.Result) error {
	k.step.Now("making the packages of %s", r.Build.Version)
	_, date, err := r.Tree.Release(k.ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(k.TempDir(), r.Build.Version)
	if _, err := packages.Build(k.ctx, repo, []*build.Result{r.Build}, date, dir, k.step); err != nil {
		return err
	}
	for _, node := range []string{k.server, k.worker} {
		if err := k.docker("cp", dir, node+":"+nodeFolder).Run(); err != nil {
			return err
		}
	}
	return nil
}

// useRegistry has containerd use the registry $1, which has no certificate.
const useRegistry = `mkdir -p "/etc/containerd/certs.d/$1:5000"
printf 'server = "http://%s:5000"\n' "$1" > "/etc/containerd/certs.d/$1:5000/hosts.toml"`

// storedObjects are stored before the upgrade, and must not change.
const storedObjects = `apiVersion: v1
kind: ConfigMap
metadata: {name: stored}
data: {KEY: as it was}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stored}
spec:
  selector: {matchLabels: {app: stored}}
  template:
    metadata: {labels: {app: stored}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: shell
        image: podenv.dev/busybox:1
        imagePullPolicy: Never
        command: [sh, -c, 'echo "$(KEY)"; exec sleep infinity']
        envFrom:
        - configMapRef: {name: stored}
`

// featureObjects are stored once the features work, and must not change in newer minors.
const featureObjects = `apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata: {name: features}
spec:
  selector: {matchLabels: {preset: features}}
  env: [{name: FROM_PRESET, value: as it was}]
---
apiVersion: v1
kind: PodTemplate
metadata: {name: features}
template:
  metadata: {labels: {app: features}}
  spec:
    containers:
    - name: shell
      image: podenv.dev/busybox:1
      env:
      - {name: 'special:name', value: as it was}
      - name: VARIABLE
        valueFrom:
          fileKeyRef: {volumeName: data, path: config.env, key: KEY, optional: true}
    volumes:
    - {name: data, emptyDir: {}}
`

const fromFileValue = "of-the-file"

// fromFile is a pod on the node NODE whose variable comes from an env file with the line LINE.
const fromFile = `apiVersion: v1
kind: Pod
metadata: {name: from-file}
spec:
  nodeName: NODE
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  initContainers:
  - name: setup
    image: podenv.dev/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, "echo \"LINE\" > /data/config.env"]
    volumeMounts: [{name: data, mountPath: /data}]
  containers:
  - name: shell
    image: podenv.dev/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, 'echo "value: $VARIABLE"']
    env:
    - name: VARIABLE
      valueFrom:
        fileKeyRef: {volumeName: data, path: config.env, key: KEY}
  volumes:
  - name: data
    emptyDir: {}
`

// fromFile returns the pod with a file in the form that the worker's kubelet reads.
func (k *kubeadmProof) fromFile(quotes bool) string {
	line := "KEY=" + fromFileValue
	if quotes {
		line = "KEY='" + fromFileValue + "'"
	}
	return strings.NewReplacer("NODE", k.worker, "LINE", line).Replace(fromFile)
}

// startRegistry starts the registry in the cluster's network.
func (k *kubeadmProof) startRegistry() error {
	archive := filepath.Join(k.TempDir(), "registry.tar")
	spec := image.Spec{Name: registryImage, Files: []image.File{
		{Path: "/registry", Mode: 0o755, Source: filepath.Join(k.tools, "registry")},
		{Path: "/config.yaml", Mode: 0o644, Data: []byte("version: 0.1\nstorage: {filesystem: {rootdirectory: /images}}\nhttp: {addr: ':5000'}\n")},
	}}
	if err := spec.Write(archive); err != nil {
		return err
	}
	err := errors.Join(k.docker("load", "--input", archive).Run(), k.docker("rm", "--force", k.registry).Run(),
		k.docker("run", "--detach", "--name="+k.registry, "--network="+k.cluster.Context(), "--env=OTEL_TRACES_EXPORTER=none", registryImage, "/registry", "serve", "/config.yaml").Run())
	if err != nil {
		return err
	}
	return k.findRegistry()
}

func (k *kubeadmProof) findRegistry() (err error) {
	k.address, err = k.docker("inspect", "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", k.registry).Output()
	return err
}

// registryImage is the image of the registry.
const registryImage = "podenv.dev/registry:proof"

func (k *kubeadmProof) remove(ctx context.Context) error {
	if k.cluster == nil {
		return nil
	}
	err := k.cluster.Docker(ctx, "rm", "--force", "--volumes", k.registry).Run()
	if k.journalFile != "" {
		err = errors.Join(err, os.RemoveAll(k.journalFile))
	}
	return errors.Join(err, deleteImages(ctx, built.value.Engine, registryImage), k.cluster.Delete(ctx, k.step))
}

func (k *kubeadmProof) docker(args ...string) *run.Cmd {
	return built.value.Engine.Docker(k.ctx, args...).Log(k.step.Log())
}

// nodeFolder is the folder of the nodes with packages and with what the way back needs.
const nodeFolder = "/podenv"

// on runs a script on a node, in nodeFolder.
func (k *kubeadmProof) on(node, script string, args ...string) error {
	_, err := k.outputOn(node, script, args...)
	return err
}

func (k *kubeadmProof) outputOn(node, script string, args ...string) (string, error) {
	return k.docker(append([]string{"exec", "--workdir=" + nodeFolder, node, "timeout", "600", "bash", "-euo", "pipefail", "-c", script, "bash"}, args...)...).Output()
}

// kubectl is kubectl on the control plane.
func (k *kubeadmProof) kubectl(args ...string) *run.Cmd {
	return k.docker(append([]string{"exec", "--interactive", k.server, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...)
}

func (k *kubeadmProof) apply(objects string) error {
	return poll.Until(k.ctx, kubeadmTimeout, func(context.Context) error { // a namespace needs a service account
		return k.kubectl("apply", "--validate=strict", "--filename=-").Stdin(strings.NewReader(objects)).Run()
	})
}

// ready waits until the API server, which has the new version, the nodes and the Deployment are ready, and a
// Job ends, as kubeadm wants it: controllers take up to a minute to find an API server that was away.
func (k *kubeadmProof) ready() error {
	return poll.Until(k.ctx, kubeadmTimeout, func(context.Context) error {
		version, err := k.kubectl("get", "--raw=/version").Output()
		if err == nil && !strings.Contains(version, `"`+k.version()+`"`) {
			err = fmt.Errorf("the API server's version is %s, want %s", version, k.version())
		}
		if err != nil {
			return err
		}
		for node, want := range k.Kubelets {
			have, err := k.kubectl("get", "node", node, `--output=jsonpath={.status.nodeInfo.kubeletVersion} {.status.conditions[?(@.type=="Ready")].status} {.spec.unschedulable}`).Output()
			if err == nil && strings.TrimSpace(have) != want+" True" {
				err = fmt.Errorf("node %s: version, ready, cordoned: %s, want version %s", node, have, want)
			}
			if err != nil {
				return err
			}
		}
		if err := k.kubectl("rollout", "status", "deployment/stored", "--timeout=5s").Run(); err != nil {
			return err
		}
		return errors.Join(k.kubectl("delete", "job/check", "--ignore-not-found").Run(), k.kubectl("create", "job", "check", "--image=podenv.dev/busybox:1", "--", "true").Run(),
			k.kubectl("wait", "--for=condition=Complete", "job/check", "--timeout=15s").Run())
	})
}

// refused checks that nothing takes what only the new version has.
func (k *kubeadmProof) refused() error {
	out, err := k.kubectl("apply", "--validate=strict", "--filename=-").Stdin(strings.NewReader(k.fromFile(false))).Output()
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.containers[0].env[0].valueFrom.fileKeyRef"`) {
		return fmt.Errorf("the pod was not refused for its field: %s, error %w", out, err)
	}
	return nil
}

func (k *kubeadmProof) readStored() (string, error) {
	return k.read("configmap/stored", "deployment/stored")
}

func (k *kubeadmProof) readFeatures() (string, error) {
	return k.read("podpreset/features", "podtemplate/features")
}

// read leaves out what v1.33 and older API servers write for a time that is not set.
func (k *kubeadmProof) read(objects ...string) (string, error) {
	out, err := k.kubectl(slices.Concat([]string{"get"}, objects, []string{"--output=jsonpath={range .items[*]}{.data}{.spec}{.template}{.metadata.uid}{end}"})...).Output()
	return strings.ReplaceAll(out, `"creationTimestamp":null,`, ""), err
}

// store stores featureObjects, once.
func (k *kubeadmProof) store() (err error) {
	if k.Features != "" {
		return nil
	}
	if err := k.apply(featureObjects); err != nil {
		return err
	}
	k.Features, err = k.readFeatures()
	for _, field := range []string{"fileKeyRef", "special:name", "FROM_PRESET"} {
		if err == nil && !strings.Contains(k.Features, field) {
			err = fmt.Errorf("stored without %s:\n%s", field, k.Features)
		}
	}
	return err
}

// kept checks that what was stored before is as it was.
func (k *kubeadmProof) kept() error {
	for was, read := range map[string]func() (string, error){k.Stored: k.readStored, k.Features: k.readFeatures} {
		if was == "" {
			continue
		}
		if now, err := read(); err != nil || now != was {
			return errors.Join(fmt.Errorf("stored is\n%s\nand was\n%s", now, was), err)
		}
	}
	return nil
}

// save saves what the way back needs.
func (k *kubeadmProof) save() error {
	for _, node := range []string{k.server, k.worker} {
		if err := k.on(node, `tar --create --file=before.tar --directory=/ etc/kubernetes var/lib/kubelet/config.yaml var/lib/kubelet/kubeadm-flags.env`); err != nil {
			return err
		}
	}
	return k.on(k.server, `pki=/etc/kubernetes/pki/etcd
ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=$pki/ca.crt --cert=$pki/server.crt --key=$pki/server.key snapshot save before.db
etcdutl --write-out=table snapshot status before.db`)
}

// configure names the registry, the gates and the switches that these need in kubeadm's configuration.
func (k *kubeadmProof) configure() error {
	return k.edit("kubeadm-config", "ClusterConfiguration", func(config map[string]any) {
		config["imageRepository"] = k.registry + ":5000/kubernetes"
		for _, component := range []string{"apiServer", "controllerManager", "scheduler"} {
			args := map[string]string{"feature-gates": featuregates.Flag(k.gates)}
			if switches := featuregates.SwitchesOf(k.gates); component == "apiServer" {
				for _, api := range switches.RuntimeConfig {
					args["runtime-config"] = strings.Trim(args["runtime-config"]+","+api+"=true", ",")
				}
				if len(switches.AdmissionPlugins) > 0 {
					args["enable-admission-plugins"] = "NodeRestriction," + strings.Join(switches.AdmissionPlugins, ",")
				}
			}
			of := config[component].(map[string]any)
			if set, ok := of["extraArgs"].(map[string]any); ok { // before v1.31
				for name, value := range args {
					set[name] = value
				}
				continue
			}
			list, _ := of["extraArgs"].([]any)
			list = slices.DeleteFunc(list, func(arg any) bool { return args[arg.(map[string]any)["name"].(string)] != "" })
			for name, value := range args {
				list = append(list, map[string]any{"name": name, "value": value})
			}
			of["extraArgs"] = list
		}
	})
}

// edit is kubectl edit of a ConfigMap of kubeadm's, whose key has YAML.
func (k *kubeadmProof) edit(name, key string, change func(map[string]any)) error {
	client, err := k.cluster.Client()
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	object, err := maps.Get(k.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(object.Data[key]), &config); err != nil {
		return err
	}
	change(config)
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	object.Data[key] = string(text)
	_, err = maps.Update(k.ctx, object, metav1.UpdateOptions{})
	return err
}

// installKilled installs a package, kills dpkg while the package is unpacked, and installs it again.
func (k *kubeadmProof) installKilled(node, component string) error {
	return k.on(node, `package=$(ls "./$2/$1"_*.deb)
dpkg --install "$package" & pid=$!
until [ -e "/usr/bin/$1.dpkg-new" ]; do kill -0 $pid; done
kill -9 $pid
! wait $pid
"$1" --version 2>/dev/null || "$1" version # the old program is there still
dpkg --install "$package"
[ ! -e "/usr/bin/$1.dpkg-new" ]`, component, k.version())
}

func (k *kubeadmProof) plan() error {
	out, err := k.outputOn(k.server, `kubeadm upgrade plan "$1"`, k.version())
	if err == nil && !strings.Contains(out, "kubeadm upgrade apply "+k.version()) {
		err = fmt.Errorf("the plan is not to go to %s:\n%s", k.version(), out)
	}
	return err
}

// fails runs kubeadm upgrade apply, which must fail with a message and leave the control plane as it is.
func (k *kubeadmProof) fails(message string) error {
	const manifests = `sha256sum /etc/kubernetes/manifests/*`
	before, err := k.outputOn(k.server, manifests)
	if err != nil {
		return err
	}
	out, err := k.outputOn(k.server, `kubeadm upgrade apply "$1" --yes 2>&1`, k.version())
	if err == nil || !strings.Contains(out+err.Error(), message) {
		return fmt.Errorf("it does not fail with %q, but with %w:\n%s", message, err, out)
	}
	after, err := k.outputOn(k.server, manifests)
	if err == nil && after != before {
		err = fmt.Errorf("the manifests are\n%s\nand were\n%s", after, before)
	}
	return err
}

func (k *kubeadmProof) applyWithoutRegistry() error {
	if err := k.docker("stop", k.registry).Run(); err != nil {
		return err
	}
	err := k.fails("ImagePull")
	clean, cancel := k.whatever()
	defer cancel()
	return errors.Join(err, k.cluster.Docker(clean, "start", k.registry).Run())
}

func (k *kubeadmProof) applyOnFullDisk() error {
	const full = "/etc/kubernetes/tmp" // kubeadm's copies of what it replaces
	if err := k.on(k.server, `mkdir -p "$1"; mountpoint --quiet "$1" || mount -t tmpfs -o size=4k,nr_inodes=8 tmpfs "$1"`, full); err != nil {
		return err
	}
	err := k.fails("no space left on device")
	clean, cancel := k.whatever()
	defer cancel()
	return errors.Join(err, k.cluster.Docker(clean, "exec", k.server, "umount", full).Run())
}

// atManifest begins kubeadm upgrade apply, and returns once the manifest of a component has the new version.
func (k *kubeadmProof) atManifest(component, script string) error {
	return k.on(k.server, `kubeadm upgrade apply "$1" --yes > apply.log 2>&1 & pid=$!
until grep -qF ":${1/+/_}" /etc/kubernetes/manifests/"$2".yaml; do kill -0 $pid || { cat apply.log; exit 1; }; sleep 0.1; done
`+script, k.version(), component)
}

func (k *kubeadmProof) applyKilled() error {
	return errors.Join(k.atManifest("kube-apiserver", "kill -9 $pid; ! wait $pid"), k.ready())
}

func (k *kubeadmProof) applyRebooted() error {
	return errors.Join(k.atManifest("kube-controller-manager", "disown"), k.reboot(k.server))
}

func (k *kubeadmProof) reboot(node string) error {
	if err := k.docker("restart", node).Run(); err != nil {
		return err
	}
	return k.ready()
}

func (k *kubeadmProof) upgradeApply() error {
	if err := k.on(k.server, `kubeadm upgrade apply "$1" --yes`, k.version()); err != nil {
		return err
	}
	return k.ready()
}

// expectValue runs a pod on the worker, and checks what its variable is.
func (k *kubeadmProof) expectValue(want string) error {
	quotes, err := featuregates.QuotesEnvFiles(k.Kubelets[k.worker])
	if err != nil {
		return err
	}
	if err := k.apply(k.fromFile(quotes)); err != nil {
		return err
	}
	if err := k.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/from-file", "--timeout="+kubeadmTimeout.String()).Run(); err != nil {
		return err
	}
	have, err := k.kubectl("logs", "from-file", "--container=shell").Output()
	if err == nil && have != strings.TrimRight("value: "+want, "\n") {
		err = fmt.Errorf("the container printed %q, want value %q", have, want)
	}
	return errors.Join(err, k.kubectl("delete", "pod/from-file").Run())
}

// upgradeKubelet upgrades the kubelet of a node whose kubeadm has been run.
func (k *kubeadmProof) upgradeKubelet(node string) error {
	if err := k.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout="+kubeadmTimeout.String()).Run(); err != nil {
		return err
	}
	err := k.on(node, `dpkg --install "./$1"/{kubelet,kubectl}_*.deb
systemctl daemon-reload
systemctl restart kubelet`, k.version())
	if err != nil {
		return err
	}
	if err := k.kubectl("uncordon", node).Run(); err != nil {
		return err
	}
	k.Kubelets[node] = k.version()
	return k.ready()
}

// nodeKilled kills kubeadm upgrade node on the worker, as soon as it has replaced a file, and runs it again.
func (k *kubeadmProof) nodeKilled() error {
	return k.on(k.worker, `dpkg --install "./$1"/kubeadm_*.deb
for try in {1..20}; do # the rest of it takes some ms
	touch now
	kubeadm upgrade node & pid=$!
	until [ /var/lib/kubelet/config.yaml -nt now ] || ! kill -0 $pid; do :; done
	if kill -9 $pid && ! wait $pid; then break; fi
	[ "$try" != 20 ]
done
kubeadm upgrade node`, k.version())
}

// configureKubelets turns the gates on in all kubelets, which know them all by now.
func (k *kubeadmProof) configureKubelets() error {
	err := k.edit("kubelet-config", "kubelet", func(config map[string]any) { config["featureGates"] = k.gates })
	if err != nil {
		return err
	}
	for _, node := range []string{k.server, k.worker} {
		if err := k.on(node, "kubeadm upgrade node phase kubelet-config; systemctl restart kubelet"); err != nil {
			return err
		}
		if err := k.ready(); err != nil {
			return err
		}
	}
	return nil
}

func (k *kubeadmProof) examples() error {
	config, err := k.cluster.RESTConfig()
	if err != nil {
		return err
	}
	_, err = examples.Run(k.ctx, config, k.gates, k.step)
	return errors.Join(err, k.expectValue(fromFileValue))
}

// back restores the stock programs, their configuration, and what etcd had. A reboot ends what runs.
func (k *kubeadmProof) back() error {
	for _, node := range []string{k.server, k.worker} {
		if err := errors.Join(k.on(node, "systemctl disable --now kubelet"), k.docker("restart", node).Run()); err != nil {
			return err
		}
		err := poll.Until(k.ctx, kubeadmTimeout, func(context.Context) error { return k.on(node, "systemctl is-active containerd") })
		if err != nil {
			return err
		}
		if err := k.on(node, `dpkg --install "./$1"/*.deb; tar --extract --file=before.tar --directory=/`, k.version()); err != nil {
			return err
		}
	}
	err := k.on(k.server, `flag() { sed -n "s/^ *- --$1=//p" /etc/kubernetes/manifests/etcd.yaml; }
rm -rf /var/lib/etcd
etcdutl snapshot restore before.db --data-dir=/var/lib/etcd --name="$(flag name)" --initial-cluster="$(flag initial-cluster)" \
  --initial-advertise-peer-urls="$(flag initial-advertise-peer-urls)" --bump-revision=1000000000 --mark-compacted`)
	if err != nil {
		return err
	}
	for _, node := range []string{k.server, k.worker} {
		if err := k.on(node, "systemctl enable --now kubelet"); err != nil {
			return err
		}
		k.Kubelets[node] = k.version()
	}
	return k.ready()
}
