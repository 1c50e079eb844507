package expected

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
)

// The containers of the workload.
const (
	setup  = "setup"  // writes the first generation
	probed = "probed" // a sidecar that consumes, and is restarted whenever its probe fails

	Init    = "init"    // an init container that consumes
	Writer  = "writer"  // a sidecar that writes one generation after the other
	Sidecar = "sidecar" // a sidecar that consumes, and goes on
	Regular = "regular" // a regular container that consumes, and goes on

	incomplete = "incomplete" // requires a key that the file never has
	enders     = 4            // how many regular containers of a pod end, and are restarted
)

const volume = "config"

// keys are those that the file has in every generation.
var keys = []string{"FIRST", "LAST"}

// generation writes generation n of the file beside it, and renames it into place. What was
// left of a file that is not in place yet is written over.
var generation = "echo $n\nvalue=$(hostname).$n\n" +
	pods.WriteEnvFile("next", keys[0]+"=$value", keys[1]+"=$value") + "mv next config.env\n"

// setupScript writes a first generation, unless the pod comes back after a reboot.
var setupScript = `cd /data
[ ! -e config.env ] || exit 0
n=0
` + generation

// writerScript goes on where a writer before it has left off, ten times a second.
var writerScript = `cd /data
n=$(sed -n 's/^LAST=.*[.]\([0-9]*\)$/\1/p' config.env)
while :; do
n=$((n+1))
` + generation + `usleep 100000
done`

// Workload is Deployments whose containers take variables from env files that change all
// the time: containers that go on, containers that end or are killed and restarted, and one
// that lacks a key. All of its pods go to the node called node.
func Workload(node string) []*appsv1.Deployment {
	goesOn := []v1.Container{consumer(Init), sidecar(serves(Sidecar, ":8081"))}
	restarts := []v1.Container{consumer(Init), sidecar(fails(serves(probed, ":8081")))}
	var ends []v1.Container
	for i := range enders {
		ends = append(ends, consumer(fmt.Sprintf("ends-%d", i)))
	}
	return []*appsv1.Deployment{
		deployment("goes-on", node, 1, goesOn, serves(Regular, ":8080")),
		deployment("restarts", node, 2, restarts, ends...),
		deployment("lacks-a-key", node, 1, nil, serves(Regular, ":8080"), serves(incomplete, ":8081")),
	}
}

// EnvOfContainers is what the containers of the workload ask for.
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

// consumer is a container that prints its environment. It knows itself by a variable that
// comes from no file.
func consumer(name string) v1.Container {
	missing := from("MISSING", "NEVER", true)
	if name == incomplete {
		missing = from("MISSING", "NEVER", false)
	}
	return pods.Dumps(name, v1.EnvVar{Name: "SELF", Value: name}, from("FIRST", keys[0], false), from("LAST", keys[1], true), missing)
}

func from(name, key string, optional bool) v1.EnvVar {
	return pods.FromEnvFile(name, volume, "config.env", key, &optional)
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

// fails gives a container a probe that nothing answers, so that the kubelet restarts it.
func fails(c v1.Container) v1.Container {
	c.LivenessProbe = &v1.Probe{
		ProbeHandler:        v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(1)}},
		InitialDelaySeconds: 3, PeriodSeconds: 5, FailureThreshold: 1,
	}
	return c
}

func runs(name, script string) v1.Container {
	return v1.Container{
		Name: name, Image: pods.Busybox, ImagePullPolicy: v1.PullNever,
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
