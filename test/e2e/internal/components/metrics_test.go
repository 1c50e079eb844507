package components

import "testing"

func TestSum(t *testing.T) {
	m, err := parse(`# TYPE requests_total counter
requests_total{code="200",verb="GET"} 5
requests_total{code="200",verb="POST"} 2
requests_total{code="422",verb="POST"} 1
# TYPE duration_seconds histogram
duration_seconds_bucket{le="+Inf"} 3
duration_seconds_sum 0.5
duration_seconds_count 3
`)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		metric string
		labels map[string]string
		want   float64
	}{
		"one sample":                     {"requests_total", map[string]string{"code": "422", "verb": "POST"}, 1},
		"samples that share a label":     {"requests_total", map[string]string{"verb": "POST"}, 3},
		"all samples":                    {"requests_total", nil, 8},
		"a label value without a sample": {"requests_total", map[string]string{"code": "400"}, 0},
		"a metric without a sample":      {"errors_total", nil, 0},
		"the count of a histogram":       {"duration_seconds_count", nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.Sum(test.metric, test.labels); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
