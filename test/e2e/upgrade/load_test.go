package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/upgrade/expected"
)

// load is the workload of allowed on one node.
type load struct {
	f       *framework.Framework
	node    nodes.Node
	checker expected.Checker
	log     expected.Log
	stored  map[string]any
	pods    []v1.Pod // as they were last seen well
}

// newLoad returns the workload once all of it is there.
func newLoad(ctx context.Context, f *framework.Framework, node nodes.Node) *load {
	ginkgo.GinkgoHelper()
	l := &load{f: f, node: node, checker: expected.Checker{Env: expected.EnvOfContainers()}}
	l.startedBy(featuregates.Patched)
	for _, d := range expected.Workload(string(node)) {
		_, err := f.ClientSet.AppsV1().Deployments(f.Namespace.Name).Create(ctx, d, metav1.CreateOptions{})
		framework.ExpectNoError(err)
	}
	l.awaitStates(ctx, featuregates.Patched)
	l.stored = l.specs(ctx)
	return l
}

// startedBy says which kubelets may start containers from now on.
func (l *load) startedBy(kubelets ...featuregates.Build) {
	l.checker.Kubelets = append(l.checker.Kubelets, expected.Since{Time: time.Now(), Kubelets: kubelets})
}

// awaitStates waits until every container runs or waits with the right reason.
func (l *load) awaitStates(ctx context.Context, kubelets ...featuregates.Build) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) error {
		list, err := l.f.ClientSet.CoreV1().Pods(l.f.Namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		l.pods = list.Items
		return expected.CheckStates(list.Items, kubelets...)
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
}

// specs are what users and controllers have written of all objects of the workload.
func (l *load) specs(ctx context.Context) map[string]any {
	ginkgo.GinkgoHelper()
	specs := map[string]any{}
	namespace := l.f.Namespace.Name
	deployments, err := l.f.ClientSet.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, d := range deployments.Items {
		specs["Deployment/"+d.Name] = d.Spec
	}
	sets, err := l.f.ClientSet.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, s := range sets.Items {
		specs["ReplicaSet/"+s.Name] = s.Spec
	}
	list, err := l.f.ClientSet.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, p := range list.Items {
		specs["Pod/"+p.Name] = p.Spec
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			asked := l.checker.Env[c.Name]
			gomega.Expect(equality.Semantic.DeepEqual(c.Env, asked)).To(gomega.BeTrue(), "container %s of pod %s asks for %v, not for %v", c.Name, p.Name, c.Env, asked)
		}
	}
	return specs
}

// goingOn are the containers that nothing but a reboot ends.
func (l *load) goingOn(ctx context.Context) map[string]string {
	ginkgo.GinkgoHelper()
	ids := workload{l.f}.running(ctx)
	maps.DeleteFunc(ids, func(name, _ string) bool {
		return !slices.Contains([]string{expected.Regular, expected.Sidecar, expected.Writer}, name[strings.Index(name, "/")+1:])
	})
	return ids
}

func (l *load) expectSame(ctx context.Context, before map[string]string) {
	ginkgo.GinkgoHelper()
	workload{l.f}.expectSame(ctx, before)
}

// collect keeps what the containers printed so far.
func (l *load) collect(ctx context.Context) {
	ginkgo.GinkgoHelper()
	framework.ExpectNoError(l.log.Add(l.node.Run(ctx, expected.LogScript(l.f.Namespace.Name))))
}

// end ends containers, as if by themselves. Those that have not ended before are restarted
// at once.
func (l *load) end(ctx context.Context, containers ...string) {
	ginkgo.GinkgoHelper()
	for _, pod := range l.pods {
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if slices.Contains(containers, s.Name) {
				l.node.Run(ctx, "ctr --namespace=k8s.io task kill --signal SIGTERM "+strings.TrimPrefix(s.ContainerID, "containerd://"))
			}
		}
	}
}

// awaitRuns waits until containers have run since a time, in each pod that has them and may
// run them. It needs no API server.
func (l *load) awaitRuns(ctx context.Context, since time.Time, containers ...string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) error {
		printed, err := l.node.TryRun(ctx, expected.LogScript(l.f.Namespace.Name))
		if err != nil {
			return err
		}
		if err := l.log.Add(printed); err != nil {
			return gomega.StopTrying(err.Error())
		}
		for _, pod := range l.pods {
			for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
				if s.ContainerID != "" && slices.Contains(containers, s.Name) && !l.log.RanSince(pod.Name, s.Name, since) {
					return fmt.Errorf("container %s of pod %s has not run since %s", s.Name, pod.Name, since.Format(time.TimeOnly))
				}
			}
		}
		return nil
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
}

// expectWell checks all that holds after a fault, given the kubelets that may have started
// containers.
func (l *load) expectWell(ctx context.Context, kubelets ...featuregates.Build) {
	ginkgo.GinkgoHelper()
	l.awaitStates(ctx, kubelets...)
	ginkgo.By("ending what has gone on: it takes what the file has now")
	now := time.Now()
	l.end(ctx, expected.Regular)
	l.awaitRuns(ctx, now, expected.Regular)
	l.awaitStates(ctx, kubelets...)
	l.expectAllowed(ctx)
	l.expectKept(ctx)
}

// expectAllowed checks all environments so far.
func (l *load) expectAllowed(ctx context.Context) {
	ginkgo.GinkgoHelper()
	l.collect(ctx)
	framework.Logf("%d environments, %d generations of files", len(l.log.Runs), len(l.log.Written))
	framework.ExpectNoError(l.checker.Check(l.log.Written, l.log.Runs))
}

// expectKept checks that no object has lost anything, and none is another one.
func (l *load) expectKept(ctx context.Context) {
	ginkgo.GinkgoHelper()
	now := l.specs(ctx)
	gomega.Expect(slices.Sorted(maps.Keys(now))).To(gomega.Equal(slices.Sorted(maps.Keys(l.stored))))
	for name, was := range l.stored {
		if !equality.Semantic.DeepEqual(now[name], was) {
			framework.Failf("%s is not as it was:\n%s\nwas\n%s", name, framework.PrettyPrintJSON(now[name]), framework.PrettyPrintJSON(was))
		}
	}
}

// What atCreation may run. A kubelet that is killed before it has started the container that
// it creates is a hit: the environment that it has read must be gone with it.
const (
	notStarted  = "not-started"
	killKubelet = `
pid=$(systemctl show --property=MainPID --value kubelet)
kill -9 "$pid"
until now=$(systemctl show --property=MainPID --value kubelet); [ "$now" != 0 ] && [ "$now" != "$pid" ]; do sleep 0.05; done
grep -q '"StartedAt":[1-9]' "$dir/$new/status" || echo ` + notStarted
)

// atCreation runs a script on the node as soon as containerd creates the nth container there
// from now on, which is new. The kubelet has read the container's env files by then.
func (l *load) atCreation(ctx context.Context, n int, script string) string {
	ginkgo.GinkgoHelper()
	return l.node.Run(ctx, fmt.Sprintf(`
dir=/var/lib/containerd/io.containerd.grpc.v1.cri/containers
ls "$dir" > /run/podenv-containers
until [ $(ls "$dir" | grep -cvxFf /run/podenv-containers) -ge %d ]; do sleep 0.01; done
new=$(ls -t "$dir" | grep -vxFf /run/podenv-containers -m 1)
`, n)+script)
}

// When swapAndKill kills the kubelet.
const (
	pid = `pid() { systemctl show --property=MainPID --value kubelet; }
is_new() { now=$(pid); [ "$now" != 0 ] && [ "$now" != "$was" ]; }
was=$(pid)
`
	killBeforeTurn = pid + `
until [ -e /usr/bin/.kubelet.new ]; do sleep 0.05; done
kill -9 "$was"`
	killAfterTurn = pid + `
until is_new; do sleep 0.05; done
kill -9 "$now"`
	// Until the old build is put back.
	killEachNew = pid + `
until [ -e /usr/bin/.kubelet.old ]; do sleep 0.05; done
while [ -e /usr/bin/.kubelet.old ]; do ! is_new || kill -9 "$now" || true; sleep 0.05; done`
)

// swapAndKill has the node run a build of the kubelet, and kills the kubelet meanwhile. It
// returns the swap's error, once it has checked that the node is what that means.
func (l *load) swapAndKill(ctx context.Context, build, minor, script string) error {
	ginkgo.GinkgoHelper()
	version, kubelets := l.node.Version(ctx, kubelet), l.checker.Kubelets[len(l.checker.Kubelets)-1].Kubelets
	l.startedBy(featuregates.Patched, featuregates.Stock)
	killed := make(chan error, 1)
	go func() {
		_, err := l.node.TryRun(ctx, script)
		killed <- err
	}()
	err := l.node.TrySwap(ctx, kubelet, build+":"+minor)
	framework.ExpectNoError(<-killed, "kill the kubelet")
	if err == nil {
		gomega.Expect(l.node.Version(ctx, kubelet)).To(gomega.HavePrefix(minor + "."))
		l.startedBy(featuregates.Build(build))
	} else {
		gomega.Expect(l.node.Version(ctx, kubelet)).To(gomega.Equal(version), "after %v", err)
		l.startedBy(kubelets...)
	}
	l.collect(ctx)
	return err
}

const (
	// outage is how long the API server is down, at least.
	outage = 20 * time.Second
	// manifest is what a kubelet runs the API server from, and away where it is meanwhile.
	manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	away     = "/etc/kubernetes/kube-apiserver.away"
)

// reach returns an error unless the API server is ready.
func reach(ctx context.Context, f *framework.Framework) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return f.ClientSet.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// takeDown ends the API server. Whatever happens, it is there again at the spec's end.
func takeDown(ctx context.Context, f *framework.Framework, node nodes.Node) {
	ginkgo.GinkgoHelper()
	ginkgo.DeferCleanup(func(ctx context.Context) { bringUp(ctx, f, node) })
	ginkgo.By("taking the API server down")
	node.Run(ctx, "mv "+manifest+" "+away)
	gomega.Eventually(ctx, func(ctx context.Context) error { return reach(ctx, f) }).
		WithTimeout(patience).WithPolling(poll).ShouldNot(gomega.Succeed())
}

// bringUp has the API server back, and those who write through it.
func bringUp(ctx context.Context, f *framework.Framework, node nodes.Node) {
	ginkgo.GinkgoHelper()
	if node.Run(ctx, "[ ! -e "+away+" ] || mv -v "+away+" "+manifest) == "" {
		return
	}
	ginkgo.By("having the API server back")
	gomega.Eventually(ctx, func(ctx context.Context) error { return reach(ctx, f) }).
		WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	refreshControllers(ctx, f)
}

// runsSince are the runs of containers since a time.
func (l *load) runsSince(since time.Time, containers ...string) (runs []expected.Run) {
	for _, run := range l.log.Runs {
		if run.Printed.After(since) && slices.Contains(containers, run.Container) {
			runs = append(runs, run)
		}
	}
	return runs
}

// expectInLogs checks that the API server shows what containers printed, in their last run
// or in the one before it.
func (l *load) expectInLogs(ctx context.Context, runs []expected.Run) {
	ginkgo.GinkgoHelper()
	for _, run := range runs {
		gomega.Eventually(ctx, func(ctx context.Context) (envs []map[string]string, err error) {
			for _, previous := range []bool{false, true} {
				text, err := l.f.ClientSet.CoreV1().Pods(l.f.Namespace.Name).
					GetLogs(run.Pod, &v1.PodLogOptions{Container: run.Container, Previous: previous}).DoRaw(ctx)
				if err != nil {
					return nil, err
				}
				env, err := pods.ParseEnv(string(text))
				if err != nil {
					return nil, err
				}
				envs = append(envs, env)
			}
			return envs, nil
		}).WithTimeout(patience).WithPolling(poll).Should(gomega.ContainElement(run.Env), "container %s of pod %s", run.Container, run.Pod)
	}
}
