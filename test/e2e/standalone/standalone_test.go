package standalone

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

const (
	gate = "EnvFiles"
	// patience covers the standalone kubelet's time, see run.sh, and the ordinary one's
	// way back.
	patience = 4 * time.Minute
)

var feature = framework.ValidFeatures.Add("EnvFiles")

var _ = framework.SIGDescribe("node")("EnvFiles", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+gate),
	framework.WithSerial(), framework.WithDisruptive(), "on a kubelet without an API server", func() {
		// Ahead of the framework's own BeforeEach, which makes a namespace.
		ginkgo.BeforeEach(func(ctx context.Context) { components.RequireGate(ctx, gate) })
		f := framework.NewDefaultFramework("standalone")
		f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged

		f.It("a static pod's container takes variables from an env file, again at each start", func(ctx context.Context) {
			node, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
			framework.ExpectNoError(err)
			shell := nodes.OpenShell(ctx, f, node.Name)
			if missing := shell.Run(ctx, "for tool in systemd-run kubelet; do command -v $tool > /dev/null || echo $tool; done"); missing != "" {
				ginkgo.Skip(fmt.Sprintf("node %s lacks %s", node.Name, strings.Join(strings.Fields(missing), " and ")))
			}
			start, err := components.KubeletStart(ctx, f.ClientSet, node.Name)
			framework.ExpectNoError(err)

			ginkgo.By("running the node's kubelet without an API server")
			install(ctx, f, shell, node.Name)
			shell.Run(ctx, launch)
			awaitReturn(ctx, f, node.Name, start)

			runs := results(ctx, shell)
			gomega.Expect(runs).NotTo(gomega.BeEmpty())
			gomega.Expect(runs[0]).To(gomega.HaveKeyWithValue("A", "first"))
			gomega.Expect(runs[len(runs)-1]).To(gomega.HaveKeyWithValue("A", "second"))
			shell.Run(ctx, "rm -rf "+dir)
		})
	})

// staticPod has a sidecar that writes the file, and rewrites it once run.sh has seen
// that the consumer ran: nobody can exec into a container of this kubelet. The consumer
// prints, ends and is restarted.
func staticPod(namespace string) *v1.Pod {
	pod := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: namespace},
		Spec: v1.PodSpec{
			HostNetwork: true,
			InitContainers: []v1.Container{{
				Name: "sidecar", Image: images.Busybox, ImagePullPolicy: v1.PullNever,
				RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways),
				Command: []string{"sh", "-ec", `
					echo "` + envfile.Text("A=first") + `" > /data/config.env
					until [ -e /data/seen ]; do sleep 1; done
					echo "` + envfile.Text("A=second") + `" > /data/new; mv /data/new /data/config.env
					exec sleep 3600`},
				VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/data"}},
			}},
			Containers: []v1.Container{{
				Name: consumer, Image: images.Envdump, ImagePullPolicy: v1.PullNever,
				Env: []v1.EnvVar{envfile.Var("A", "config", "config.env", "A", nil)},
			}},
			Volumes: []v1.Volume{pods.EmptyDir("config")},
		},
	}
	pods.Quick(&pod.Spec)
	return pod
}

// install puts onto the node what the standalone kubelet needs: the configuration of
// the node's own, less what asks an API server, the static pod, and the scripts.
func install(ctx context.Context, f *framework.Framework, shell nodes.Shell, node string) {
	ginkgo.GinkgoHelper()
	config := map[string]any{}
	framework.ExpectNoError(components.KubeletConfig(ctx, f.ClientSet, node, &config))
	config["apiVersion"], config["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	config["staticPodPath"] = dir + "/manifests"
	config["enableServer"] = false
	config["rotateCertificates"] = false
	config["serverTLSBootstrap"] = false
	config["authentication"] = map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}}
	config["authorization"] = map[string]any{"mode": "AlwaysAllow"}

	shell.Run(ctx, "rm -rf "+dir+"; mkdir -p "+dir+"/manifests")
	for file, content := range map[string]any{"kubelet.json": config, "manifests/pod.json": staticPod(f.Namespace.Name)} {
		data, err := json.Marshal(content)
		framework.ExpectNoError(err)
		shell.RunWith(ctx, string(data), "cat > "+dir+"/"+file)
	}
	for file, content := range map[string]string{"run.sh": runScript, "restore.sh": restoreScript} {
		shell.RunWith(ctx, content, "cat > "+dir+"/"+file)
	}
}

// awaitReturn waits until the node's own kubelet runs again, another process than the
// one that started at start, and all that runs in kube-system is ready.
func awaitReturn(ctx context.Context, f *framework.Framework, node string, start float64) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) error {
		now, err := components.KubeletStart(ctx, f.ClientSet, node)
		if err != nil {
			return err
		}
		if now == start {
			return fmt.Errorf("the kubelet of node %s has not been stopped yet", node)
		}
		if err := components.KubeletHealth(ctx, f.ClientSet, node, now); err != nil {
			return err
		}
		list, err := f.ClientSet.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if !podutils.IsPodReady(&pod) {
				return fmt.Errorf("pod %s of kube-system is not ready", pod.Name)
			}
		}
		return nil
	}).WithTimeout(patience).WithPolling(time.Second).Should(gomega.Succeed())
}

// results returns what runs of the consumer saw, in their order, some of them twice. The shell's
// container was stopped with all others, so it may take a moment to come back.
func results(ctx context.Context, shell nodes.Shell) []map[string]string {
	ginkgo.GinkgoHelper()
	var text string
	gomega.Eventually(ctx, func(ctx context.Context) (err error) {
		text, err = shell.TryRun(ctx, "", "tail -n 30 "+dir+"/kubelet.log >&2; cat "+dir+"/result")
		return err
	}).WithTimeout(patience).WithPolling(time.Second).Should(gomega.Succeed(), "read the results of the standalone kubelet")
	var runs []map[string]string
	for line := range strings.Lines(text) {
		_, document, ok := strings.Cut(line, " stdout F ") // as CRI has it, after the time
		if !ok {
			framework.Failf("a container's log has the line %q", line)
		}
		env, err := pods.ParseEnv(document)
		framework.ExpectNoError(err)
		runs = append(runs, env)
	}
	return runs
}
