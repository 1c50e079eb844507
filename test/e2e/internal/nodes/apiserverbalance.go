package nodes

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
)

// Route says which server gets the connections to the one endpoint.
type Route string

// The routes.
const (
	ToFirst  Route = "to the first server"
	ToSecond Route = "to the second server"
	ToBoth   Route = "to both servers, by chance"
)

const (
	endpoint   = 6443 // where everybody looks for the API server, and where the first one serves
	secondPort = 6444 // where the second one serves
	firstPort  = 6445 // what leads past the balancer to the first one

	chain = "PODENV-APISERVERS"
)

// refused6 is a rule against connections to the endpoint over IPv6, which kind's nodes may
// have among them though the cluster has not. Their clients take IPv4, which is balanced.
var refused6 = fmt.Sprintf("INPUT -p tcp --dport %d ! -d ::1 -j REJECT --reject-with tcp-reset", endpoint)

// unbalanced removes what balanced and rules make, as far as it is there.
var unbalanced = `{
for hook in PREROUTING OUTPUT; do iptables -w -t nat -D $hook -j ` + chain + ` || :; done
iptables -w -D INPUT -j ` + chain + ` || :
for table in nat filter; do iptables -w -t $table -F ` + chain + ` && iptables -w -t $table -X ` + chain + ` || :; done
ip6tables -w -D ` + refused6 + ` || :
} 2>/dev/null
`

// balanced has new connections pass the balancer's rules. They come first: what a Service
// leads to the endpoint, from pods, has been decided on before. A host without IPv6 may
// have no ip6tables that works.
var balanced = `for hook in PREROUTING OUTPUT; do iptables -w -t nat -I $hook -j ` + chain + `; done
iptables -w -I INPUT -j ` + chain + `
ip6tables -w -I ` + refused6 + ` || :
`

// rules are the balancer in the node with this address, as iptables-restore reads it. A
// client sends all its requests through one connection for as long as that lasts, so those
// of components on the nodes are reset once they are older than the rules, at the next word
// of the client: generation differs from that of all rules before. The specs' own
// connections, from elsewhere, end in no error that is not a server's.
func rules(address string, nodes []string, route Route, generation int) string {
	var b strings.Builder
	lead := func(port int, match string, to int) {
		fmt.Fprintf(&b, "-A %s -d %s -p tcp --dport %d %s-j DNAT --to-destination %[2]s:%[5]d\n", chain, address, port, match, to)
	}
	fmt.Fprintf(&b, "*nat\n:%s - [0:0]\n", chain)
	lead(firstPort, "", endpoint)
	switch route {
	case ToSecond:
		lead(endpoint, "", secondPort)
	case ToBoth:
		lead(endpoint, "-m statistic --mode random --probability 0.5 ", secondPort)
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

// Balance leads the connections of components, and new ones of everybody else who connects
// to the endpoint from outside of pods, where route says: all components reconnect.
func (p *APIServerPair) Balance(ctx context.Context, route Route) {
	ginkgo.GinkgoHelper()
	ginkgo.By("leading connections " + string(route))
	p.generation++
	p.node.Run(ctx, "iptables-restore -w --noflush <<'END'\n"+rules(p.address, p.nodes, route, p.generation)+"END")
}
