package envfiles

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// verbosity is the level at which the logs must be silent about env files.
const verbosity = 4

var _ = describe("no byte of an env file", func(f *framework.Framework) {
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged // to read logs on the nodes

	f.It("shows in the logs at verbosity 4 and the metrics of kubelet and API server, be it a good value, in a broken line or in an over-long name", func(ctx context.Context) {
		apiServer := requireVerboseAPIServer(ctx, f)
		const secret = "frobozz-ozmoo-swordfish"
		begin := time.Now().Add(-time.Second)
		writeSecret(ctx, f, secret)

		// The one that starts must not print it either: a container's log is on the node.
		quiet := pods.Dumps(consumer, from("A", "config.env", "A"))
		quiet.Image, quiet.Command = images.Busybox, []string{"sh", "-c", `test -n "$A"`}
		pods.RunToEnd(ctx, f, newPod("silent-good", []v1.Container{writesSecret("A=$LICENSE")}, quiet))
		names := []string{"silent-good"}
		for name, content := range map[string]string{
			"silent-no-declaration": "A=1\n$LICENSE",
			"silent-bad-name":       "A=1\n$LICENSE ä=x",
			"silent-long-name":      "A=1\n$LICENSE$(printf %0200d 0)=x",
			"silent-long-value":     "A=$LICENSE$(printf %032768d 0)",
		} {
			pods.Create(ctx, f, newPod(name, []v1.Container{writesSecret(content)}, pods.Dumps(consumer, from("A", "config.env", "A"))))
			names = append(names, name)
		}
		on := map[string]bool{}
		for _, name := range names {
			if name != "silent-good" {
				pods.AwaitConfigError(ctx, f, name, consumer)
			}
			pod, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, name, metav1.GetOptions{})
			framework.ExpectNoError(err)
			on[pod.Spec.NodeName] = true
		}

		forbidden := append(strings.Split(secret, "-"), base64.StdEncoding.EncodeToString([]byte(secret)))
		for node := range on {
			requireVerboseKubelet(ctx, f, node)
			journal := fmt.Sprintf("journalctl --unit=kubelet --no-pager --output=cat --since=@%d", begin.Unix())
			expectSilent(ctx, nodes.OpenShell(ctx, f, node), journal, f.Namespace.Name, forbidden)
			expectSilentMetrics(ctx, f, components.KubeletMetrics(node), forbidden)
		}
		logs := "cat /var/log/pods/" + metav1.NamespaceSystem + "_" + apiServer.Name + "_*/*/*.log"
		expectSilent(ctx, nodes.OpenShell(ctx, f, apiServer.Spec.NodeName), logs, f.Namespace.Name, forbidden)
		expectSilentMetrics(ctx, f, components.APIServerMetrics, forbidden)
	})
})

// expectSilent checks that what command prints on a node has lines about namespace,
// which shows that they are the lines to look at, and none with a forbidden text.
func expectSilent(ctx context.Context, shell nodes.Shell, command, namespace string, forbidden []string) {
	ginkgo.GinkgoHelper()
	// The texts go in through stdin: the API server logs the command of an exec.
	count := func(texts ...string) int {
		out := shell.RunWith(ctx, strings.Join(texts, "\n"), `texts=$(cat); `+command+` | grep -c -i -F -e "$texts" || true`)
		n, err := strconv.Atoi(strings.TrimSpace(out))
		framework.ExpectNoError(err, "%s | grep -c", command)
		return n
	}
	gomega.Expect(count(namespace)).To(gomega.BeNumerically(">", 0), "lines about the namespace in: %s", command)
	for _, text := range forbidden {
		gomega.Expect(count(text)).To(gomega.BeZero(), "lines with %q in: %s", text, command)
	}
}

func expectSilentMetrics(ctx context.Context, f *framework.Framework, path string, forbidden []string) {
	ginkgo.GinkgoHelper()
	metrics, err := components.Scrape(ctx, f.ClientSet, path)
	framework.ExpectNoError(err)
	text := strings.ToLower(metrics.Text)
	for _, part := range forbidden {
		// No ContainSubstring: its failure would print a megabyte.
		gomega.Expect(strings.Contains(text, strings.ToLower(part))).To(gomega.BeFalseBecause("%s has %q", path, part))
	}
}

// requireVerboseKubelet skips the running spec unless the kubelet of node logs enough
// for its silence to mean something.
func requireVerboseKubelet(ctx context.Context, f *framework.Framework, node string) {
	ginkgo.GinkgoHelper()
	var config struct{ Logging struct{ Verbosity int } }
	framework.ExpectNoError(components.KubeletConfig(ctx, f.ClientSet, node, &config))
	if config.Logging.Verbosity < verbosity {
		ginkgo.Skip(fmt.Sprintf("the kubelet of node %s logs at verbosity %d: give it -v=%d", node, config.Logging.Verbosity, verbosity))
	}
}

var verbosityFlag = regexp.MustCompile(`^--?v=(\d+)$`)

// requireVerboseAPIServer returns the pod of an API server, and skips the running spec
// where there is none or it logs too little.
func requireVerboseAPIServer(ctx context.Context, f *framework.Framework) *v1.Pod {
	ginkgo.GinkgoHelper()
	list, err := f.ClientSet.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
	framework.ExpectNoError(err)
	if len(list.Items) != 1 {
		ginkgo.Skip(fmt.Sprintf("the API server is to be one pod labelled component=kube-apiserver, as kubeadm makes it; there are %d", len(list.Items)))
	}
	apiServer := &list.Items[0]
	for _, arg := range apiServer.Spec.Containers[0].Command {
		if m := verbosityFlag.FindStringSubmatch(arg); m != nil {
			if level, err := strconv.Atoi(m[1]); err == nil && level >= verbosity {
				return apiServer
			}
		}
	}
	ginkgo.Skip(fmt.Sprintf("the API server logs below verbosity %d: give it --v=%[1]d", verbosity))
	return nil
}
