package expected

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// The containers of the workload.
const (
	setup  = "setup"  // writes the first generation
	probed = "probed" // a consumer that is a sidecar; its failing probe restarts it

	Init    = "init"    // a consumer that is an init container
	Writer  = "writer"  // a sidecar that writes one generation after the other
	Sidecar = "sidecar" // a consumer that is a sidecar and keeps running
	Regular = "regular" // a consumer that is a regular container and keeps running

	incomplete = "incomplete" // requires a key that the file never has

	endingContainers = 4 // regular containers per pod that end and are restarted
)

const volume = "config"

// keys are the keys of the file in every generation.
var keys = []string{"FIRST", "LAST"}

// generation writes generation n to a temporary file, and renames it into place. It overwrites
// a temporary file that an earlier run has left.
var generation = "echo $n\nvalue=$(hostname).$n\n" +
	envfile.Script("next", keys[0]+"=$value", keys[1]+"=$value") + "mv next config.env\n"

// setupScript writes the first generation, unless the pod has one from before a reboot.
var setupScript = `cd /data
[ ! -e config.env ] || exit 0
n=0
` + generation

// writerScript writes ten generations a second, starting after the one in the file.
var writerScript = `cd /data
n=$(sed -n 's/^LAST=.*[.]\([0-9]*\)$/\1/p' config.env)
while :; do
n=$((n+1))
` + generation + `usleep 100000
done`

// Workload returns Deployments whose containers take variables from env files that change all
// the time: containers that keep running, containers that end or are killed and restarted, and
// one that lacks a key. All pods run on node.
func Workload(node string) []*appsv1.Deployment {
	goesOn := []v1.Container{consumer(Init), sidecar(serves(Sidecar, ":8081"))}
	restarts := []v1.Container{consumer(Init), sidecar(withFailingProbe(serves(probed, ":8081")))}
	var ends []v1.Container
	for i := range endingContainers {
		ends = append(ends, consumer(fmt.Sprintf("ends-%d", i)))
	}
	return []*appsv1.Deployment{
		deployment("goes-on", node, 1, goesOn, serves(Regular, ":8080")),
		deployment("restarts", node, 2, restarts, ends...),
		deployment("lacks-a-key", node, 1, nil, serves(Regular, ":8080"), serves(incomplete, ":8081")),
	}
}

// EnvOfContainers is the env of each consumer's spec.
func EnvOfContainers() map[string][]v1.EnvVar {
	asked := map[string][]v1.EnvVar{}
	for _, d := range Workload("") {
		spec := d.Spec.Template.Spec
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			if len(c.Env) > 0 {
				asked[c.Name] = c.Env
			}
		}
	}
	return asked
}

// consumer is a container that prints its environment. The variable SELF, which is not from a
// file, has the container's name.
func consumer(name string) v1.Container {
	missing := from("MISSING", "NEVER", true)
	if name == incomplete {
		missing = from("MISSING", "NEVER", false)
	}
	return pods.Dumps(name, v1.EnvVar{Name: "SELF", Value: name}, from("FIRST", keys[0], false), from("LAST", keys[1], true), missing)
}

func from(name, key string, optional bool) v1.EnvVar {
	return envfile.Var(name, volume, "config.env", key, &optional)
}

func serves(name, address string) v1.Container {
	c := consumer(name)
	c.Args = []string{"serve", address}
	return c
}

func sidecar(c v1.Container) v1.Container {
	c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	return c
}

// withFailingProbe adds a probe that nothing answers, so that the kubelet restarts the container.
func withFailingProbe(c v1.Container) v1.Container {
	c.LivenessProbe = &v1.Probe{
		ProbeHandler:        v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(1)}},
		InitialDelaySeconds: 3, PeriodSeconds: 5, FailureThreshold: 1,
	}
	return c
}

func runs(name, script string) v1.Container {
	return v1.Container{
		Name: name, Image: images.Busybox, ImagePullPolicy: v1.PullNever,
		Command:      []string{"sh", "-ec", script},
		VolumeMounts: []v1.VolumeMount{{Name: volume, MountPath: "/data"}},
	}
}

func deployment(name, node string, replicas int32, init []v1.Container, containers ...v1.Container) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	spec := v1.PodSpec{
		NodeSelector:   map[string]string{v1.LabelHostname: node},
		InitContainers: append([]v1.Container{runs(setup, setupScript), sidecar(runs(Writer, writerScript))}, init...),
		Containers:     containers,
		Volumes:        []v1.Volume{pods.EmptyDir(volume)},
	}
	pods.Quick(&spec)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}
