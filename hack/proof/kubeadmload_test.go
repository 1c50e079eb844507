package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"podenv.dev/hack/internal/poll"
)

// load runs pods on a cluster that is being upgraded, one after the other, and reads what is stored. The API
// server may be away, and nodes may reboot; but what it answers must be right, and no pod may start with a
// wrong environment.
type load struct {
	client kubernetes.Interface
	files  bool         // pods take a variable from an env file, too
	stored string       // what storedObjects are
	ended  atomic.Int64 // pods with env files that had the right environment, since takeFiles
}

func (k *kubeadmProof) newLoad() (*load, error) {
	config, err := k.cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	return &load{client: client}, err
}

// during does something under the load.
func (l *load) during(ctx context.Context, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	found := make(chan error, 1)
	go func() { found <- l.run(ctx) }()
	err := do()
	stop()
	return errors.Join(err, <-found)
}

// run returns what it finds to be wrong.
func (l *load) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := errors.Join(l.read(ctx), l.pods(ctx)); err != nil {
			return fmt.Errorf("under load: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
	return nil
}

// read compares storedObjects with what they were.
func (l *load) read(ctx context.Context) error {
	config, err := l.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "stored", metav1.GetOptions{})
	if err != nil {
		return lost(err)
	}
	deployment, err := l.client.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, "stored", metav1.GetOptions{})
	if err != nil {
		return lost(err)
	}
	now, err := json.Marshal([]any{config.UID, config.Data, deployment.UID, deployment.Spec})
	switch {
	case err != nil:
		return err
	case l.stored == "":
		l.stored = string(now)
	case l.stored != string(now):
		return fmt.Errorf("stored is\n%s\nand was\n%s", now, l.stored)
	}
	return nil
}

// lost returns err if the API server says that an object is not there; nil if it is away.
func lost(err error) error {
	if apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// wrongEnvironment is the exit code of a container whose environment is not what it must be.
const wrongEnvironment = 42

// pods looks after the pod of the load, and makes another one if it has ended.
func (l *load) pods(ctx context.Context) error {
	jobs := l.client.BatchV1().Jobs(metav1.NamespaceDefault)
	list, err := jobs.List(ctx, metav1.ListOptions{LabelSelector: "load"})
	if err != nil {
		return nil
	}
	for _, job := range list.Items {
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				return fmt.Errorf("a pod has failed, with %s if its environment was wrong: %s %s", batchv1.JobReasonPodFailurePolicy, c.Reason, c.Message)
			}
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue &&
				jobs.Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}) == nil {
				l.ended.Add(int64(len(job.Spec.Template.Spec.InitContainers))) // which writes the env file
			}
		}
	}
	if len(list.Items) == 0 {
		_, _ = jobs.Create(ctx, l.job(), metav1.CreateOptions{}) // the API server may be away
	}
	return nil
}

// bothForms is an env file that kubelets of all minors read alike.
const bothForms = "DOTENV='\nKEY=" + fromFileValue + "\nQUOTED='\nNEXT= \\\nKEY='" + fromFileValue + "'\n"

func (l *load) job() *batchv1.Job {
	const image = "podenv.dev/busybox:1"
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To(int64(0)),
		Containers: []corev1.Container{{
			Name: "shell", Image: image, ImagePullPolicy: corev1.PullNever,
			Command: []string{"sh", "-c", fmt.Sprintf(`test "$EXPANDED" = "it is as it was" && test "$VARIABLE" = "$WANT" || exit %d`, wrongEnvironment)},
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "stored"}}}},
			Env:     []corev1.EnvVar{{Name: "EXPANDED", Value: "it is $(KEY)"}},
		}},
	}
	if l.files {
		mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		spec.InitContainers = []corev1.Container{{
			Name: "setup", Image: image, ImagePullPolicy: corev1.PullNever, VolumeMounts: mounts,
			Command: []string{"sh", "-c", `printf %s "$FILE" > /data/config.env`}, Env: []corev1.EnvVar{{Name: "FILE", Value: bothForms}},
		}}
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "WANT", Value: fromFileValue},
			corev1.EnvVar{Name: "VARIABLE", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "data", Path: "config.env", Key: "KEY"}}})
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "load-", Labels: map[string]string{"load": ""}},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To(int32(1000)), // nodes reboot
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:      batchv1.PodFailurePolicyActionFailJob,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{wrongEnvironment}},
			}}},
			Template: corev1.PodTemplateSpec{Spec: spec},
		},
	}
}

// takeFiles has pods take a variable from an env file, too, and counts these anew.
func (l *load) takeFiles() {
	l.files = true
	l.ended.Store(0)
}

// worked waits until a pod of the load that takes a variable from an env file has ended.
func (l *load) worked(ctx context.Context) error {
	return poll.Until(ctx, kubeadmTimeout, func(context.Context) error {
		if l.ended.Load() == 0 {
			return errors.New("no pod of the load that takes a variable from an env file has ended")
		}
		return nil
	})
}
