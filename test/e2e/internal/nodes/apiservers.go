package nodes

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/secondserver"
)

const (
	// timeout is for a server to start and for the cluster to recover. It covers the longest
	// back-off of a kubelet, five minutes.
	timeout = 6 * time.Minute
	poll    = 500 * time.Millisecond
)

// APIServer is one of the two servers, with clients that connect only to it.
type APIServer struct {
	Name    string
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
}

// APIServerPair is two API servers on one node.
type APIServerPair struct {
	// On is the node's own server, with the gates on; Off is the second one.
	On, Off APIServer

	client  kubernetes.Interface // for the endpoint; f has it for one spec only
	node    Node
	address string   // of the node
	nodes   []string // addresses of all nodes

	generation int // of the balancer's rules
}

// Both returns On and Off.
func (p *APIServerPair) Both() []APIServer { return []APIServer{p.On, p.Off} }

// StartSecondAPIServer runs a second API server, with the gates in off turned off, on a cluster with one
// control plane whose API server has them on. Connections go to the first one until Balance is called. At the
// end of the calling container or spec, it stops the second server and checks that the cluster is healthy.
func StartSecondAPIServer(ctx context.Context, f *framework.Framework, off ...string) *APIServerPair {
	ginkgo.GinkgoHelper()
	// Connections that an earlier pair marked must not count as connections of this one.
	p := &APIServerPair{client: f.ClientSet, generation: int(time.Now().Unix())}
	p.find(ctx)
	ginkgo.DeferCleanup(p.stop)

	p.node.Run(ctx, removeRules) // a killed run may have left some
	p.Balance(ctx, ToFirst)
	p.node.Run(ctx, installChains)
	p.On = p.server("the API server with the gates on", firstPort)
	p.Off = p.server("the API server with the gates off", secondPort)

	p.runSecond(ctx, secondserver.GatesOff(off))
	ginkgo.By("waiting for both API servers")
	p.expect(ctx, p.On, off, featuregates.GateOn)
	p.expect(ctx, p.Off, off, featuregates.GateOff)
	return p
}

// ServerFolder is a folder of the node that the API server of StartChangedAPIServer can read
// and write, at the same path.
const ServerFolder = "/var/lib/podenv-apiserver"

// StartChangedAPIServer runs a second API server on the control plane's node, with flags in place of those of
// the same names, and with files, by name, in ServerFolder. It returns the server, to which no other client
// connects, and the node. It stops the server as StartSecondAPIServer does, and deletes the folder.
func StartChangedAPIServer(ctx context.Context, f *framework.Framework, files map[string]string, flags ...string) (APIServer, Node) {
	ginkgo.GinkgoHelper()
	p := &APIServerPair{client: f.ClientSet}
	p.find(ctx)
	ginkgo.DeferCleanup(func(ctx context.Context) {
		p.stop(ctx)
		p.node.Run(ctx, "rm -rf "+ServerFolder)
	})
	p.node.Run(ctx, "mkdir -p "+ServerFolder)
	for name, text := range files {
		p.node.Run(ctx, fmt.Sprintf("cat > %s/%s <<'END'\n%s\nEND", ServerFolder, name, text))
	}
	p.runSecond(ctx, secondserver.FlagsSet(ServerFolder, flags))
	s := p.server("the API server with "+strings.Join(flags, " "), secondPort)
	p.expect(ctx, s, nil, "")
	return s, p.node
}

// runSecond makes the kubelet run an API server like the node's own, with changes.
func (p *APIServerPair) runSecond(ctx context.Context, change func(*v1.Pod, *v1.Container) error) {
	ginkgo.GinkgoHelper()
	text, err := secondserver.Manifest(p.node.Run(ctx, "cat "+secondserver.FirstManifest), change)
	framework.ExpectNoError(err)
	p.node.Run(ctx, secondserver.Install(text))
}

func (p *APIServerPair) find(ctx context.Context) {
	ginkgo.GinkgoHelper()
	list, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, node := range list.Items {
		addresses := e2enode.GetAddressesByTypeAndFamily(&node, v1.NodeInternalIP, v1.IPv4Protocol)
		gomega.Expect(addresses).NotTo(gomega.BeEmpty(), "an IPv4 address of node %s", node.Name)
		p.nodes = append(p.nodes, addresses[0])
		if _, ok := node.Labels["node-role.kubernetes.io/control-plane"]; ok {
			gomega.Expect(p.node).To(gomega.BeEmpty(), "a control plane beside node %s", node.Name)
			p.node, p.address = Node(node.Name), addresses[0]
		}
	}
	gomega.Expect(p.node).NotTo(gomega.BeEmpty(), "a control plane")
}

func (p *APIServerPair) server(name string, port int) APIServer {
	ginkgo.GinkgoHelper()
	config, err := framework.LoadConfig()
	framework.ExpectNoError(err)
	// The serving certificate is for the node's address, too.
	config.Host = "https://" + net.JoinHostPort(p.address, strconv.Itoa(port))
	config.QPS, config.Burst = 100, 200
	s := APIServer{Name: name}
	s.Client, err = kubernetes.NewForConfig(config)
	framework.ExpectNoError(err)
	s.Dynamic, err = dynamic.NewForConfig(config)
	framework.ExpectNoError(err)
	return s
}

func (p *APIServerPair) expect(ctx context.Context, s APIServer, names []string, want featuregates.GateState) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) error {
		answer, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("%w: %s", err, answer)
		}
		return nil
	}).WithTimeout(timeout).WithPolling(poll).Should(gomega.Succeed(), s.Name)
	for _, name := range names {
		state, err := components.GateAt(ctx, s.Client, name, components.APIServerMetrics)
		framework.ExpectNoError(err)
		gomega.Expect(state).To(gomega.Equal(want), "the gate %s of %s", name, s.Name)
	}
}

// Requests returns the sum of the server's apiserver_request_total with these labels.
func (s APIServer) Requests(ctx context.Context, labels map[string]string) (float64, error) {
	metrics, err := components.Scrape(ctx, s.Client, components.APIServerMetrics)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.Name, err)
	}
	return metrics.Sum("apiserver_request_total", labels), nil
}

// stop stops the second server, and waits until the cluster is healthy without it.
func (p *APIServerPair) stop(ctx context.Context) {
	ginkgo.GinkgoHelper()
	ginkgo.By("ending the second API server")
	p.node.Run(ctx, removeRules+secondserver.Remove)
	onlyOne := fmt.Sprintf("[ $(pgrep -cf '^%s .*%s') = 1 ]", secondserver.First, secondserver.PortFlag)
	gomega.Eventually(ctx, func(ctx context.Context) error {
		if _, err := p.node.TryRun(ctx, onlyOne); err != nil {
			return fmt.Errorf("not one API server runs: %w", err)
		}
		_, err := p.client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, secondserver.Name+"-"+string(p.node), metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the API still has the pod of the second API server: error %v", err)
		}
		return p.checkHealth(ctx)
	}).WithTimeout(timeout).WithPolling(poll).Should(gomega.Succeed())
}

func (p *APIServerPair) checkHealth(ctx context.Context) error {
	list, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range list.Items {
		if !e2enode.IsConditionSetAsExpectedSilent(&node, v1.NodeReady, true) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	pods, err := p.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if !podutils.IsPodReady(&pod) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
	}
	return nil
}

// Route is which server gets the connections to the endpoint.
type Route string

// The routes.
const (
	ToFirst  Route = "to the first server"
	ToSecond Route = "to the second server"
	ToBoth   Route = "to both servers, by chance"
)

const (
	endpoint   = 6443 // the port that all clients use, and on which the first server listens
	secondPort = secondserver.Port
	firstPort  = 6445 // always redirected to the first server

	chain = "PODENV-APISERVERS"
)

// rejectIPv6 is a rule against connections to the endpoint over IPv6, which kind's nodes may have
// even in an IPv4 cluster. Clients fall back to IPv4, which is balanced.
var rejectIPv6 = fmt.Sprintf("INPUT -p tcp --dport %d ! -d ::1 -j REJECT --reject-with tcp-reset", endpoint)

// removeRules removes the chains of installChains and rules, if they exist.
var removeRules = `{
for hook in PREROUTING OUTPUT; do iptables -w -t nat -D $hook -j ` + chain + ` || :; done
iptables -w -D INPUT -j ` + chain + ` || :
for table in nat filter; do iptables -w -t $table -F ` + chain + ` && iptables -w -t $table -X ` + chain + ` || :; done
ip6tables -w -D ` + rejectIPv6 + ` || :
} 2>/dev/null
`

// installChains makes new connections pass the balancer's rules before all other rules. They
// come before kube-proxy's, so they do not apply to connections from pods through a Service.
// ip6tables may fail on a host without IPv6.
var installChains = `for hook in PREROUTING OUTPUT; do iptables -w -t nat -I $hook -j ` + chain + `; done
iptables -w -I INPUT -j ` + chain + `
ip6tables -w -I ` + rejectIPv6 + ` || :
`

// rules is the balancer of the node with this address, as input of iptables-restore. A client sends all its
// requests through one connection while it lasts. So the rules reset connections from nodes that are older than
// the rules, at the next packet of the client: generation must differ from that of all earlier rules. They do
// not reset the specs' own connections, from elsewhere, so that a spec only sees errors of a server.
func rules(address string, nodes []string, route Route, generation int) string {
	var b strings.Builder
	redirect := func(port int, match string, to int) {
		fmt.Fprintf(&b, "-A %s -d %s -p tcp --dport %d %s-j DNAT --to-destination %[2]s:%[5]d\n", chain, address, port, match, to)
	}
	fmt.Fprintf(&b, "*nat\n:%s - [0:0]\n", chain)
	redirect(firstPort, "", endpoint)
	switch route {
	case ToSecond:
		redirect(endpoint, "", secondPort)
	case ToBoth:
		redirect(endpoint, "-m statistic --mode random --probability 0.5 ", secondPort)
	}
	fmt.Fprintf(&b, "COMMIT\n*filter\n:%s - [0:0]\n", chain)
	for _, node := range nodes {
		to := fmt.Sprintf("-A %s -s %s -p tcp -m conntrack --ctdir ORIGINAL --ctorigdstport %d", chain, node, endpoint)
		fmt.Fprintf(&b, "%s -m conntrack --ctstate NEW -j CONNMARK --set-mark %d\n", to, generation)
		fmt.Fprintf(&b, "%s -m connmark ! --mark %d -j REJECT --reject-with tcp-reset\n", to, generation)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// Balance redirects connections to the endpoint as route says: those of components, which all
// reconnect, and new ones of other clients outside of pods.
func (p *APIServerPair) Balance(ctx context.Context, route Route) {
	ginkgo.GinkgoHelper()
	ginkgo.By("leading connections " + string(route))
	p.generation++
	p.node.Run(ctx, "iptables-restore -w --noflush <<'END'\n"+rules(p.address, p.nodes, route, p.generation)+"END")
}
