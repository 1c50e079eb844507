package pod_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/batch"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/utils/ptr"
)

// kind is a kind of object that carries a pod spec.
type kind struct {
	strategy interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
	}
	restartPolicy api.RestartPolicy
	object        func(metav1.ObjectMeta, api.PodTemplateSpec) runtime.Object // as it is stored
	podSpec       func(runtime.Object) *api.PodSpec
	path          string // of the pod spec

	immutable     string // the field of the error if an update changes the pod spec
	quietOnUpdate bool   // updates do not warn
	onlyWarns     bool   // of what is wrong with a template, but for its fileKeyRefs
}

var (
	labels   = map[string]string{"app": "env-files"}
	selector = &metav1.LabelSelector{MatchLabels: labels}
)

var kinds = map[string]kind{
	"Pod": {
		strategy: pod.Strategy, restartPolicy: api.RestartPolicyAlways,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			return &api.Pod{ObjectMeta: meta, Spec: template.Spec}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*api.Pod).Spec },
		path:    "spec", immutable: "spec", quietOnUpdate: true,
	},
	"PodTemplate": {
		strategy: podtemplate.Strategy, restartPolicy: api.RestartPolicyAlways,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			return &api.PodTemplate{ObjectMeta: meta, Template: template}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*api.PodTemplate).Template.Spec },
		path:    "template.spec",
	},
	"ReplicationController": {
		strategy: replicationcontroller.Strategy, restartPolicy: api.RestartPolicyAlways,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			rc := &api.ReplicationController{ObjectMeta: meta, Spec: api.ReplicationControllerSpec{Selector: labels, Template: &template}}
			// It is a pointer since v1.33.
			switch replicas := any(&rc.Spec.Replicas).(type) {
			case *int32:
				*replicas = 1
			case **int32:
				*replicas = ptr.To[int32](1)
			}
			return rc
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*api.ReplicationController).Spec.Template.Spec },
		path:    "spec.template.spec",
	},
	"ReplicaSet": {
		strategy: replicaset.Strategy, restartPolicy: api.RestartPolicyAlways,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			return &apps.ReplicaSet{ObjectMeta: meta, Spec: apps.ReplicaSetSpec{Selector: selector, Template: template}}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*apps.ReplicaSet).Spec.Template.Spec },
		path:    "spec.template.spec",
	},
	"Deployment": {
		strategy: deployment.Strategy, restartPolicy: api.RestartPolicyAlways,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			return &apps.Deployment{ObjectMeta: meta, Spec: apps.DeploymentSpec{
				Selector: selector, Template: template,
				Strategy: apps.DeploymentStrategy{
					Type:          apps.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: intstr.FromInt32(1), MaxUnavailable: intstr.FromInt32(1)},
				},
			}}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*apps.Deployment).Spec.Template.Spec },
		path:    "spec.template.spec",
	},
	"DaemonSet": {
		strategy: daemonset.Strategy, restartPolicy: api.RestartPolicyAlways,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			return &apps.DaemonSet{ObjectMeta: meta, Spec: apps.DaemonSetSpec{
				Selector: selector, Template: template, TemplateGeneration: 1,
				UpdateStrategy: apps.DaemonSetUpdateStrategy{Type: apps.OnDeleteDaemonSetStrategyType},
			}}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*apps.DaemonSet).Spec.Template.Spec },
		path:    "spec.template.spec",
	},
	"StatefulSet": {
		strategy: statefulset.Strategy, restartPolicy: api.RestartPolicyAlways, onlyWarns: true,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			return &apps.StatefulSet{ObjectMeta: meta, Spec: apps.StatefulSetSpec{
				Selector: selector, Template: template,
				PodManagementPolicy: apps.OrderedReadyPodManagement,
				UpdateStrategy:      apps.StatefulSetUpdateStrategy{Type: apps.RollingUpdateStatefulSetStrategyType},
			}}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*apps.StatefulSet).Spec.Template.Spec },
		path:    "spec.template.spec",
	},
	"Job": {
		strategy: job.Strategy, restartPolicy: api.RestartPolicyNever,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			return &batch.Job{ObjectMeta: meta, Spec: jobSpec(template)}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec { return &obj.(*batch.Job).Spec.Template.Spec },
		path:    "spec.template.spec", immutable: "spec.template",
	},
	"CronJob": {
		strategy: cronjob.Strategy, restartPolicy: api.RestartPolicyNever,
		object: func(meta metav1.ObjectMeta, template api.PodTemplateSpec) runtime.Object {
			spec := jobSpec(template)
			spec.Selector, spec.ManualSelector = nil, nil
			return &batch.CronJob{ObjectMeta: meta, Spec: batch.CronJobSpec{
				Schedule: "* * * * *", ConcurrencyPolicy: batch.AllowConcurrent,
				JobTemplate: batch.JobTemplateSpec{Spec: spec},
			}}
		},
		podSpec: func(obj runtime.Object) *api.PodSpec {
			return &obj.(*batch.CronJob).Spec.JobTemplate.Spec.Template.Spec
		},
		path: "spec.jobTemplate.spec.template.spec",
	},
}

func jobSpec(template api.PodTemplateSpec) batch.JobSpec {
	return batch.JobSpec{
		Completions: ptr.To[int32](1), Parallelism: ptr.To[int32](1), BackoffLimit: ptr.To[int32](1),
		CompletionMode: ptr.To(batch.NonIndexedCompletion), PodReplacementPolicy: ptr.To(batch.TerminatingOrFailed),
		Selector: selector, ManualSelector: ptr.To(true), Template: template,
	}
}

// stored is an object of the kind with the pod spec, as it is stored.
func (k kind) stored(spec api.PodSpec) runtime.Object {
	spec.RestartPolicy = k.restartPolicy
	return k.object(
		metav1.ObjectMeta{Name: "name", Namespace: metav1.NamespaceDefault, ResourceVersion: "1", Generation: 1},
		api.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	)
}

// write writes an object through its strategy, in the order of the API server: over
// old or, if that is nil, as a new one. That a pod spec is immutable is no error here.
func (k kind) write(obj, old runtime.Object) (errs field.ErrorList, warnings []string) {
	ctx := genericapirequest.NewDefaultContext()
	if old == nil {
		k.strategy.PrepareForCreate(ctx, obj)
		return k.strategy.Validate(ctx, obj), k.strategy.WarningsOnCreate(ctx, obj)
	}
	k.strategy.PrepareForUpdate(ctx, obj, old)
	errs, warnings = k.strategy.ValidateUpdate(ctx, obj, old), k.strategy.WarningsOnUpdate(ctx, obj, old)
	return slices.DeleteFunc(errs, func(err *field.Error) bool { return err.Field == k.immutable }), warnings
}

// TestEnvFiles writes every kind of object that carries a pod spec through its
// strategy, in the order of the API server, and checks what happens to
// fileKeyRef, where the errors are, and who is warned of what.
func TestEnvFiles(t *testing.T) {
	fileKeyRef := func(c *api.Container) {
		c.Env = []api.EnvVar{{Name: "FROM_FILE", ValueFrom: &api.EnvVarSource{
			FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
		}}}
	}
	mount := func(c *api.Container) {
		c.VolumeMounts = []api.VolumeMount{{Name: "config", MountPath: "/config"}}
	}
	pods := func(init []podtest.TweakContainer, tweaks ...podtest.TweakContainer) func() api.PodSpec {
		return func() api.PodSpec {
			spec := podtest.MakePodSpec(podtest.SetVolumes(podtest.MakeEmptyVolume("config")), podtest.SetContainers(podtest.MakeContainer("app", tweaks...)))
			spec.InitContainers = []api.Container{podtest.MakeContainer("setup", init...)}
			return spec
		}
	}
	plain := pods([]podtest.TweakContainer{mount})
	using := pods([]podtest.TweakContainer{mount}, fileKeyRef)
	unwritten := pods(nil, fileKeyRef)
	breaking := pods([]podtest.TweakContainer{mount}, fileKeyRef, mount)
	newer := func(spec func() api.PodSpec) func() api.PodSpec {
		return func() api.PodSpec {
			s := spec()
			s.Containers[0].Image = "image:v2"
			return s
		}
	}

	const (
		source   = ".containers[0].env[0].valueFrom"
		mounting = ".containers[0].volumeMounts[0].name"
		warning  = `.containers[0].env[0].valueFrom.fileKeyRef: no init container mounts volume "config", so nothing can have written the file; mount it in an init container, or set optional`
	)
	testCases := []struct {
		name        string
		gate        bool
		old, new    func() api.PodSpec // old is nil: create
		wantDropped bool
		wantError   string // field, below the pod spec
		wantWarning string // below the pod spec
	}{
		{name: "gate off, create: dropped", new: using, wantDropped: true, wantError: source},
		{name: "gate off, create of one that breaks the rule: dropped, so there is no rule to break", new: breaking, wantDropped: true, wantError: source},
		{name: "gate off, create of one whose file nothing writes: dropped, so there is nothing to warn of", new: unwritten, wantDropped: true, wantError: source},
		{name: "gate off, update from one without: dropped", old: plain, new: using, wantDropped: true, wantError: source},
		{name: "gate off, update from one with: kept", old: using, new: newer(using)},
		{name: "gate off, update from one that breaks the rule: kept", old: breaking, new: newer(breaking)},
		{name: "gate off, update to one that breaks the rule: refused", old: using, new: breaking, wantError: mounting},
		{name: "gate off, update to one whose file nothing writes: warned, as the field is kept", old: using, new: unwritten, wantWarning: warning},

		{name: "gate on, create: kept", gate: true, new: using},
		{name: "gate on, create of one that breaks the rule: refused", gate: true, new: breaking, wantError: mounting},
		{name: "gate on, create of one whose file nothing writes: warned", gate: true, new: unwritten, wantWarning: warning},
		{name: "gate on, update from one without: kept", gate: true, old: plain, new: using},
		{name: "gate on, update to one that breaks the rule: refused", gate: true, old: using, new: breaking, wantError: mounting},
		{name: "gate on, update from one that breaks the rule: accepted", gate: true, old: breaking, new: newer(breaking)},
		{name: "gate on, update that fixes one that breaks the rule: accepted", gate: true, old: breaking, new: using},
		{name: "gate on, update to one whose file nothing writes: warned", gate: true, old: using, new: unwritten, wantWarning: warning},
		{name: "gate on, update of nothing in the pod spec: not warned again", gate: true, old: unwritten, new: unwritten},
		{name: "gate on, update that has the file written: not warned of what was", gate: true, old: unwritten, new: using},
	}
	for kindName, k := range kinds {
		for _, tc := range testCases {
			t.Run(kindName+"/"+tc.name, func(t *testing.T) {
				featurestest.SetGate(t, features.EnvFiles, tc.gate)
				var old runtime.Object
				if tc.old != nil {
					old = k.stored(tc.old())
				}
				obj := k.stored(tc.new())
				errs, warnings := k.write(obj, old)

				dropped := k.podSpec(obj).Containers[0].Env[0].ValueFrom.FileKeyRef == nil
				if dropped != tc.wantDropped {
					t.Errorf("want dropped: %v, got: %v", tc.wantDropped, dropped)
				}

				var want, got []string
				// A template that lost its only fileKeyRef has none that is wrong.
				onlyWarned := k.onlyWarns && tc.wantDropped
				if tc.wantError != "" && !onlyWarned {
					want = append(want, k.path+tc.wantError)
				}
				for _, err := range errs {
					got = append(got, err.Field)
				}
				// Some strategies validate an object twice when it is updated.
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, want) {
					t.Errorf("want errors of fields %v, got: %v", want, errs)
				}

				if onlyWarned {
					if len(warnings) != 1 || !strings.HasPrefix(warnings[0], k.path+tc.wantError+": ") {
						t.Errorf("want a warning about %s, got %q", k.path+tc.wantError, warnings)
					}
					return
				}
				var wantWarnings []string
				if tc.wantWarning != "" && !(tc.old != nil && k.quietOnUpdate) {
					wantWarnings = append(wantWarnings, k.path+tc.wantWarning)
				}
				if !slices.Equal(warnings, wantWarnings) {
					t.Errorf("want warnings:\n%s\ngot:\n%s", strings.Join(wantWarnings, "\n"), strings.Join(warnings, "\n"))
				}
			})
		}
	}
}
