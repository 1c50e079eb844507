package pod

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

// resizeStrategy is the strategy through which a pod is resized. From v1.32 on it is
// one of its own: envfiles_resize_test.go.
var resizeStrategy rest.RESTUpdateStrategy = Strategy

// Who may mount a volume of env files, through each way that a pod is written.
func TestEnvFileMounts(t *testing.T) {
	const (
		appMounts   = "spec.containers[0].volumeMounts[0].name"
		debugMounts = "spec.ephemeralContainers[0].volumeMounts[0].name"
	)
	setup := podtest.MakeContainer("setup", mountingConfig)
	consumer := podtest.MakeContainer("app", consumingConfig)

	obeying := envFilePod([]api.Container{setup}, consumer)
	breaking := envFilePod(nil, podtest.MakeContainer("app", mountingConfig), podtest.MakeContainer("other", consumingConfig))
	// The volume is mounted by a container, and consumed by none yet.
	mounting := envFilePod(nil, podtest.MakeContainer("app", mountingConfig))

	newImage := func(pod *api.Pod) { pod.Spec.Containers[0].Image = "image:v2" }
	newLabel := func(pod *api.Pod) { pod.Labels = map[string]string{"new": "label"} }
	running := func(pod *api.Pod) { pod.Status.Phase = api.PodRunning }
	moreCPU := func(pod *api.Pod) {
		pod.Spec.Containers[0].Resources.Requests = podtest.MakeResourceRequirements(map[string]string{"cpu": "200m"}, nil).Requests
	}
	debug := func(tweaks ...podtest.TweakContainer) func(*api.Pod) {
		return func(pod *api.Pod) {
			c := podtest.MakeContainer("debug", tweaks...)
			c.Resources = api.ResourceRequirements{}
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, api.EphemeralContainer{
				EphemeralContainerCommon: api.EphemeralContainerCommon(c),
			})
		}
	}

	testCases := []struct {
		name     string
		strategy rest.RESTUpdateStrategy // nil: create
		old      *api.Pod
		change   func(*api.Pod)
		want     []string // fields of the errors
	}{
		{name: "create, only an init container mounts", old: obeying},
		{name: "create, a container mounts", old: breaking, want: []string{appMounts}},

		{name: "update of a pod that obeys", strategy: Strategy, old: obeying, change: newImage},
		{name: "update of the image of a pod that breaks the rule", strategy: Strategy, old: breaking, change: newImage},
		{name: "update of the labels of a pod that breaks the rule", strategy: Strategy, old: breaking, change: newLabel},
		{name: "update of the status of a pod that breaks the rule", strategy: StatusStrategy, old: breaking, change: running},
		{name: "resize of a pod that obeys", strategy: resizeStrategy, old: obeying, change: moreCPU},
		{name: "resize of a pod that breaks the rule", strategy: resizeStrategy, old: breaking, change: moreCPU},

		{name: "a new ephemeral container consumes", strategy: EphemeralContainersStrategy, old: obeying, change: debug(consumingConfig)},
		{name: "a new ephemeral container does neither, in a pod that breaks the rule", strategy: EphemeralContainersStrategy, old: breaking, change: debug()},
		{name: "a new ephemeral container mounts what is consumed", strategy: EphemeralContainersStrategy, old: obeying, change: debug(mountingConfig), want: []string{debugMounts}},
		{name: "a new ephemeral container mounts what it consumes", strategy: EphemeralContainersStrategy, old: envFilePod([]api.Container{setup}, podtest.MakeContainer("app")), change: debug(mountingConfig, consumingConfig), want: []string{debugMounts}},
		{name: "a new ephemeral container consumes what a container mounts", strategy: EphemeralContainersStrategy, old: mounting, change: debug(consumingConfig), want: []string{appMounts}},
		{name: "a new ephemeral container mounts what is consumed, in a pod that breaks the rule", strategy: EphemeralContainersStrategy, old: breaking, change: debug(mountingConfig)},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			featurestest.SetGate(t, features.EnvFiles, true)
			featurestest.SetGate(t, features.InPlacePodVerticalScaling, true)
			ctx := genericapirequest.NewDefaultContext()
			pod := tc.old.DeepCopy()

			var errs field.ErrorList
			if tc.strategy == nil {
				Strategy.PrepareForCreate(ctx, pod)
				errs = Strategy.Validate(ctx, pod)
			} else {
				tc.change(pod)
				tc.strategy.PrepareForUpdate(ctx, pod, tc.old)
				errs = tc.strategy.ValidateUpdate(ctx, pod, tc.old)
			}

			var got []string
			for _, err := range errs {
				got = append(got, err.Field)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("want errors of fields %v, got: %v", tc.want, errs)
			}
		})
	}
}

func mountingConfig(c *api.Container) {
	c.VolumeMounts = []api.VolumeMount{{Name: "config", MountPath: "/config"}}
}

func consumingConfig(c *api.Container) {
	c.Env = []api.EnvVar{{Name: "FROM_FILE", ValueFrom: &api.EnvVarSource{
		FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
	}}}
}

// envFilePod returns a stored pod that can be resized.
func envFilePod(initContainers []api.Container, containers ...api.Container) *api.Pod {
	cpu := podtest.MakeResourceRequirements(map[string]string{"cpu": "100m"}, nil)
	statuses := make([]api.ContainerStatus, len(containers))
	for i := range containers {
		containers[i].Resources = cpu
		statuses[i] = api.ContainerStatus{Name: containers[i].Name, Resources: &cpu}
	}
	return podtest.MakePod("pod",
		podtest.SetObjectMeta(metav1.ObjectMeta{Name: "pod", Namespace: metav1.NamespaceDefault, ResourceVersion: "1"}),
		podtest.SetVolumes(podtest.MakeEmptyVolume("config")),
		podtest.SetInitContainers(initContainers...),
		podtest.SetContainers(containers...),
		podtest.SetStatus(api.PodStatus{QOSClass: api.PodQOSBurstable, ContainerStatuses: statuses}),
	)
}
