package pods

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/test/bench/measure"
)

// podResources are the resources that the life of a pod makes requests for. Others,
// leases and nodes above all, are asked for whether there are pods or not.
var podResources = []string{"pods", "events", "configmaps", "secrets", "serviceaccounts"}

// requests counts requests by what they are: "PATCH pods/status".
type requests map[string]float64

// readRequests reads the API server's metrics. Watches are left out: they count when
// they end, which is any time.
func readRequests(metrics io.Reader) (requests, error) {
	const total = "apiserver_request_total"
	families, err := measure.Parse(metrics, total)
	if err != nil {
		return nil, err
	}
	counts := requests{}
	for _, metric := range families[total].GetMetric() {
		labels := measure.Labels(metric)
		if !slices.Contains(podResources, labels["resource"]) || labels["verb"] == "WATCH" || labels["verb"] == "CONNECT" {
			continue
		}
		what := labels["verb"] + " " + labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		counts[what] += metric.GetCounter().GetValue()
	}
	return counts, nil
}

// since returns how much r is above before.
func (r requests) since(before requests) requests {
	diff := requests{}
	for what, n := range r {
		if n -= before[what]; n != 0 {
			diff[what] = n
		}
	}
	return diff
}

// over is r divided by n.
func (r requests) over(n int) requests {
	quotient := requests{}
	for what, count := range r {
		quotient[what] = count / float64(n)
	}
	return quotient
}

func (r requests) sum() float64 {
	var sum float64
	for _, n := range r {
		sum += n
	}
	return sum
}

// String is one line, the kinds of requests in their order.
func (r requests) String() string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(r)) {
		words = append(words, fmt.Sprintf("%s %.4g", what, r[what]))
	}
	return strings.Join(words, ", ")
}

// The counts are settled when they have stayed the same for so many readings: the
// kubelet sends events, and statuses, some time after what they are about.
const (
	settled     = 4
	settlePause = time.Second
	settleLimit = time.Minute
)

// settledRequests reads the counts when they have come to rest.
func settledRequests(ctx ginkgo.SpecContext, client kubernetes.Interface) requests {
	ginkgo.GinkgoHelper()
	var last requests
	same := 0
	gomega.Eventually(ctx, func() (int, error) {
		body, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
		if err != nil {
			return 0, err
		}
		defer body.Close()
		now, err := readRequests(body)
		if err != nil {
			return 0, err
		}
		if same++; last == nil || len(now.since(last)) > 0 {
			same = 1
		}
		last = now
		return same, nil
	}).WithTimeout(settleLimit).WithPolling(settlePause).Should(gomega.BeNumerically(">=", settled), "does anything else use the cluster?")
	return last
}
