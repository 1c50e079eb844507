package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// podResources are the resources that the life of a pod makes requests for. Others,
// leases and nodes above all, are asked for whether there are pods or not.
var podResources = []string{"pods", "events", "configmaps", "secrets", "serviceaccounts"}

var (
	requestTotal = regexp.MustCompile(`^apiserver_request_total\{([^}]*)\} (\S+)$`)
	labelPair    = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// requests counts requests by what they are: "PATCH pods/status".
type requests map[string]float64

// readRequests reads the API server's metrics. Watches are left out: they count when
// they end, which is any time.
func readRequests(metrics io.Reader) (requests, error) {
	counts := requests{}
	known := false
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := requestTotal.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		known = true
		labels := map[string]string{}
		for _, pair := range labelPair.FindAllStringSubmatch(m[1], -1) {
			labels[pair[1]] = pair[2]
		}
		if !slices.Contains(podResources, labels["resource"]) || labels["verb"] == "WATCH" || labels["verb"] == "CONNECT" {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("reading apiserver_request_total: %w", err)
		}
		what := labels["verb"] + " " + labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		counts[what] += n
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	if !known {
		return nil, fmt.Errorf("the API server's metrics do not have apiserver_request_total")
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
		words = append(words, what+" "+significant(r[what]))
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
func settledRequests(ctx context.Context, client kubernetes.Interface) (requests, error) {
	var last requests
	same := 0
	err := wait.PollUntilContextTimeout(ctx, settlePause, settleLimit, true, func(ctx context.Context) (bool, error) {
		body, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
		if err != nil {
			return false, err
		}
		defer body.Close()
		now, err := readRequests(body)
		if err != nil {
			return false, err
		}
		if same++; last == nil || len(now.since(last)) > 0 {
			same = 1
		}
		last = now
		return same >= settled, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("the cluster's API server does not come to rest within %s: is anything else using it?", settleLimit)
	}
	return last, err
}
