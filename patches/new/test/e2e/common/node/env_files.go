package node

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	e2epodoutput "k8s.io/kubernetes/test/e2e/framework/pod/output"
	imageutils "k8s.io/kubernetes/test/utils/image"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
)

// An init container writes a file into an emptyDir, and the kubelet sets variables of another
// container from it. The other container does not mount the volume.
// For more information, see https://kep.k8s.io/3721.
var _ = SIGDescribe("Env files", framework.WithFeatureGate(features.EnvFiles), func() {
	f := framework.NewDefaultFramework("env-files")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	f.It("should set variables from a file that an init container wrote", f.WithNodeConformance(), func(ctx context.Context) {
		pod := envFilesPod(`printf '# a comment\n\nGREETING=hello world\nEMPTY=\n' > /data/config.env`,
			fromEnvFile("RENAMED", "config.env", "GREETING", false),
			fromEnvFile("EMPTY", "config.env", "EMPTY", false))
		e2epodoutput.TestContainerOutputRegexp(ctx, f, "variables from a file", pod, 0, []string{
			`(?m)^RENAMED=hello world$`,
			`(?m)^EMPTY=$`,
		})
	})

	f.It("should take the last definition of a key", f.WithNodeConformance(), func(ctx context.Context) {
		pod := envFilesPod(`printf 'KEY=first\nKEY=last\n' > /data/config.env`, fromEnvFile("KEY", "config.env", "KEY", false))
		e2epodoutput.TestContainerOutputRegexp(ctx, f, "the last definition", pod, 0, []string{`(?m)^KEY=last$`})
	})

	f.It("should let later variables and the command refer to a variable from a file", f.WithNodeConformance(), func(ctx context.Context) {
		pod := envFilesPod(`echo HOST=db > /data/config.env`,
			fromEnvFile("HOST", "config.env", "HOST", false),
			v1.EnvVar{Name: "URL", Value: "https://$(HOST)"})
		pod.Spec.Containers[0].Command = []string{"sh", "-c", "echo command: $(HOST), variable: $URL"}
		e2epodoutput.TestContainerOutput(ctx, f, "references", pod, 0, []string{"command: db, variable: https://db"})
	})

	f.It("should leave out an optional variable whose file or key is missing", f.WithNodeConformance(), func(ctx context.Context) {
		pod := envFilesPod(`echo KEY=value > /data/config.env`,
			fromEnvFile("NO_FILE", "missing.env", "KEY", true),
			fromEnvFile("NO_KEY", "config.env", "MISSING", true))
		pod.Spec.Containers[0].Command = []string{"sh", "-c", `echo "set: ${NO_FILE+file}${NO_KEY+key}."`}
		e2epodoutput.TestContainerOutput(ctx, f, "optional variables", pod, 0, []string{"set: ."})
	})

	f.It("should not start a container whose file lacks the key, and say so without the file's values", f.WithNodeConformance(), func(ctx context.Context) {
		pod := e2epod.NewPodClient(f).Create(ctx, envFilesPod(`echo OTHER=hunter2 > /data/config.env`, fromEnvFile("VARIABLE", "config.env", "MISSING", false)))
		framework.ExpectNoError(e2epod.WaitForPodContainerToFail(ctx, f.ClientSet, f.Namespace.Name, pod.Name, 0, "CreateContainerConfigError", f.Timeouts.PodStart))

		ginkgo.By("reading the status and the events of the pod")
		pod, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, pod.Name, metav1.GetOptions{})
		framework.ExpectNoError(err)
		message := pod.Status.ContainerStatuses[0].State.Waiting.Message
		gomega.Expect(message).To(gomega.And(gomega.ContainSubstring("MISSING"), gomega.ContainSubstring("config.env")))
		gomega.Expect(message).NotTo(gomega.ContainSubstring("hunter2"))
		gomega.Eventually(ctx, func(ctx context.Context) ([]v1.Event, error) {
			events, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
			if err != nil {
				return nil, err
			}
			return events.Items, nil
		}, f.Timeouts.PodStart).Should(gomega.And(
			gomega.ContainElement(gomega.HaveField("Message", gomega.ContainSubstring("MISSING"))),
			gomega.HaveEach(gomega.HaveField("Message", gomega.Not(gomega.ContainSubstring("hunter2"))))))
	})

	f.It("should take the value that the file has when a container starts again", f.WithNodeConformance(), func(ctx context.Context) {
		pod := envFilesPod("echo RUN=1 > /data/config.env; exec sleep 3600", fromEnvFile("RUN", "config.env", "RUN", false))
		pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		writer := &pod.Spec.InitContainers[0]
		writer.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		writer.StartupProbe = &v1.Probe{
			ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"test", "-s", "/data/config.env"}}},
			PeriodSeconds: 1, FailureThreshold: 60,
		}
		pod.Spec.Containers[0].Command = []string{"sh", "-c", `[ "$RUN" = 2 ]`}
		pod = e2epod.NewPodClient(f).Create(ctx, pod)
		framework.ExpectNoError(e2epod.WaitForPodCondition(ctx, f.ClientSet, f.Namespace.Name, pod.Name, "the first run has ended", f.Timeouts.PodStart, func(pod *v1.Pod) (bool, error) {
			return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].LastTerminationState.Terminated != nil, nil
		}))

		ginkgo.By("changing the value")
		e2epod.ExecShellInContainer(f, pod.Name, "writer", "echo RUN=2 > /data/new && mv /data/new /data/config.env")
		framework.ExpectNoError(e2epod.WaitForPodSuccessInNamespace(ctx, f.ClientSet, pod.Name, f.Namespace.Name))
	})
})

// envFilesVolume is the volume of the files.
const envFilesVolume = "config"

// envFilesPod returns a pod whose init container runs script with the volume at /data. The only
// container has the variables env and prints its environment.
func envFilesPod(script string, env ...v1.EnvVar) *v1.Pod {
	return e2epod.MustMixinRestrictedPodSecurity(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "env-files-"},
		Spec: v1.PodSpec{
			RestartPolicy:                 v1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			InitContainers: []v1.Container{{
				Name: "writer", Image: imageutils.GetE2EImage(imageutils.BusyBox),
				Command:      []string{"sh", "-c", script},
				VolumeMounts: []v1.VolumeMount{{Name: envFilesVolume, MountPath: "/data"}},
			}},
			Containers: []v1.Container{{
				Name: "reader", Image: imageutils.GetE2EImage(imageutils.BusyBox),
				Command: []string{"env"}, Env: env,
			}},
			Volumes: []v1.Volume{{Name: envFilesVolume, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
	})
}

// fromEnvFile returns a variable that has the value of key in the file at path in the pod's volume.
func fromEnvFile(name, path, key string, optional bool) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{
		FileKeyRef: &v1.FileKeySelector{VolumeName: envFilesVolume, Path: path, Key: key, Optional: &optional},
	}}
}
