package nodes

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"podenv.dev/test/e2e/secondserver"
)

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

// rules is the balancer of the node with this address, as input of iptables-restore. A client
// sends all its requests through one connection while it lasts. So the rules reset connections
// from nodes that are older than the rules, at the next packet of the client: generation must
// differ from that of all earlier rules. They do not reset the specs' own connections, from
// elsewhere, so that a spec only sees errors of a server.
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
