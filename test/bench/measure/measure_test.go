package measure

import (
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i))
	}
	for p, want := range map[int]time.Duration{0: 1, 50: 50, 99: 99, 100: 100} {
		if got := Percentile(took, p); got != want {
			t.Errorf("percentile %d: %d, want %d", p, got, want)
		}
	}
	if got := Percentile([]time.Duration{7}, 99); got != 7 {
		t.Errorf("of one: %d, want 7", got)
	}
}

func TestMetricsThatAreNotThere(t *testing.T) {
	const text = "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1.5\n# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 2\n"
	m, err := Parse(strings.NewReader(text), "process_cpu_seconds_total")
	if err != nil {
		t.Fatal(err)
	}
	if cpu, memory := m.Value("process_cpu_seconds_total"), m.Value("process_resident_memory_bytes"); cpu != 1.5 || memory != 2 {
		t.Errorf("read %v and %v", cpu, memory)
	}
	if _, err := Parse(strings.NewReader(text), "another"); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("error %v", err)
	}
}
