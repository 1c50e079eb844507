package htmlreport

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"podenv.dev/featuregates"
)

// example is a run with all parts of a page.
func example(t testing.TB) *Run {
	t.Helper()
	r := ofGoTest(t)
	r.On = []Text{{Title: "Series", Text: "v1.33: v1.33.13 with 35 patches"}, {Title: "Host", Text: Host()}}
	r.Start, r.Seconds = time.Now(), 3600
	r.Documents = []featuregates.Document{{Name: "TEP-1", Title: "Tides", Rows: [][2]string{{"1", "The sea has tides."}, {"2", "No spec shows this."}}}}
	r.Plots = []Plot{{"Times of a group", []PlotRow{{"Read/by=ours", "10.0µs", []float64{1e-5, 1e-5}}, {"Read/by=another", "1.00ms", []float64{1e-4, 1e-3}}}}}
	r.Texts = []Text{
		{Title: "A text", Text: strings.Repeat("A long line of a text. ", 50)},
		{Title: "A table", Text: strings.Repeat("a cell │ ", 50), Table: true},
	}
	return r
}

func html(t testing.TB, r *Run) string {
	t.Helper()
	page, err := r.html()
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestThePageNeedsNothingElse(t *testing.T) {
	page := html(t, example(t))
	if want := `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">`; !strings.Contains(page, want) {
		t.Errorf("no %s", want)
	}
	for _, bad := range []string{"<script", "<link", "<img", "<iframe", "@import", "url(", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("%s is in the page", bad)
		}
	}
}

func TestThePageHasWhatTheFirstScreenSays(t *testing.T) {
	page := html(t, example(t))
	for _, want := range []string{
		"<h1>podenv test</h1>", "v1.33.13 with 35 patches", "GiB of memory, Linux", "<b>4</b> ✓ passed", "<b>4</b> ✗ failed", "<b>1</b> – skipped",
		"the water: expected low", "looking at the moon", "&lt;script&gt;alert(1)&lt;/script&gt;", `<tr class="empty"><th scope="row">2</th>`, `<circle cx="0.00%"`, `<circle cx="50.00%"`, `<circle cx="100.00%"`, "1.00ms", "✗ spring, not neap",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
}

func TestALargeRunHasAPageOfBoundedSize(t *testing.T) {
	text := strings.Repeat("a line of a long log\n", 100_000)
	r := &Run{Command: "podenv test"}
	for i := range 20_000 {
		r.Results = append(r.Results, Result{Group: "upstream", Name: fmt.Sprintf("TestOf/something_%d", i), State: Passed})
		r.Spans = append(r.Spans, Span{Lane: fmt.Sprint(i), State: Passed, Start: time.Now()})
	}
	for i := range 20 {
		r.Results = append(r.Results, Result{Group: "e2e", Name: fmt.Sprint("spec ", i), State: Failed, Why: text, Details: []Text{{Title: "log", Text: text}}})
	}
	page := html(t, r)
	if len(page) > maxPage {
		t.Errorf("the page has %d bytes", len(page))
	}
	for _, want := range []string{"bytes are left out here; index.json beside this page has them", "more are in index.json beside this page", "spec 19"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	dir := t.TempDir()
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	again, err := Read(filepath.Join(dir, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Results) != len(r.Results) || again.Results[20_000].Why != text {
		t.Error("the data is not whole")
	}
}

func TestWhatIsNoReportIsNamed(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "name a folder that has index.html") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dataFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// TestContrast computes the contrast of WCAG for each color of text with what is behind it.
func TestContrast(t *testing.T) {
	light, dark, ok := strings.Cut(pageText, "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark scheme")
	}
	for scheme, css := range map[string]string{"light": light, "dark": dark} {
		colors := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6})`).FindAllStringSubmatch(css, -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		behind := map[string][]string{
			"text": {"page", "card", "code"}, "quiet": {"page", "card", "code"}, "link": {"page", "card"}, "failed": {"card", "failed-soft"},
			"passed": {"card", "passed-soft"}, "skipped": {"card", "skipped-soft"},
		}
		for front, backs := range behind {
			for _, back := range backs {
				high, low := max(colors[front], colors[back]), min(colors[front], colors[back])
				if ratio := (high + 0.05) / (low + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", scheme, front, back, ratio)
				}
			}
		}
	}
}

// luminance is the relative luminance of WCAG 2.
func luminance(t testing.TB, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
