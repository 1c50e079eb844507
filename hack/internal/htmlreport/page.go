package htmlreport

import (
	"bytes"
	"cmp"
	_ "embed" // page.html
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/jsonout"
)

const (
	pageFile = "index.html"
	dataFile = "index.json"
	maxPage  = 2 << 20 // bytes
)

//go:embed page.html
var pageText string

// Write writes the page of a run into dir, and all its data beside it: the page has a largest size.
func Write(dir string, r *Run) error {
	page, err := r.html()
	if err == nil {
		err = jsonout.Save(filepath.Join(dir, dataFile), r)
	}
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, pageFile), page, 0o644)
}

// Read reads what Write wrote into a folder, which path or the path of the page names.
func Read(path string) (*Run, error) {
	file := filepath.Join(strings.TrimSuffix(path, pageFile), dataFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w; name a folder that has %s and %s", err, pageFile, dataFile)
	}
	run := &Run{}
	if err := json.Unmarshal(data, run); err != nil {
		return nil, fmt.Errorf("reading the report %s: %w", file, err)
	}
	return run, nil
}

// html returns the page. If it is too large, its texts and lists are cut shorter, and say so.
func (r *Run) html() ([]byte, error) {
	for limit := 64 << 10; ; limit /= 2 {
		var out bytes.Buffer
		page, err := template.New(pageFile).Funcs(functions(limit)).Parse(pageText)
		if err == nil {
			err = page.Execute(&out, r)
		}
		if err != nil || out.Len() <= maxPage || limit == 0 {
			return out.Bytes(), err
		}
	}
}

// functions are those of a page with limit bytes of each text, and limit/8 results of each list.
func functions(limit int) template.FuncMap {
	return template.FuncMap{
		"count": Count, "duration": duration, "lanes": func(spans []Span) []lane { return lanes(spans[:min(len(spans), limit/8)]) },
		"cut": func(text string) string {
			if left := len(text) - limit; left > 0 {
				text = fmt.Sprintf("%s\n[%d bytes are left out here; %s beside this page has them]\n%s", text[:limit/2], left, dataFile, text[len(text)-limit/2:])
			}
			return strings.ToValidUTF8(text, "�")
		},
		"failed": func(results []Result) []Result {
			return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.State != Failed })
		},
		"most": func(results []Result) []Result { // those that failed first
			const order = "failed skipped passed"
			sorted := slices.SortedStableFunc(slices.Values(results), func(a, b Result) int {
				return cmp.Compare(strings.Index(order, a.State), strings.Index(order, b.State))
			})
			return sorted[:min(len(sorted), limit/8)]
		},
		"left": func(results []Result) int { return max(0, len(results)-limit/8) },
		"together": func(results []Result) string {
			c := Count(results)
			return cmp.Or(map[bool]string{true: Failed}[c.Failed > 0], map[bool]string{true: Passed}[c.Passed > 0], Skipped)
		},
		"longest": func(spans []Span) []Span {
			sorted := slices.SortedStableFunc(slices.Values(spans), func(a, b Span) int { return cmp.Compare(b.Seconds, a.Seconds) })
			return sorted[:min(10, len(sorted))]
		},
	}
}

// lane has spans that follow each other.
type lane struct {
	Name string
	Bars []bar
}

// bar is a span with its place in the whole time, in percent.
type bar struct {
	Span
	Left, Width float64
}

func lanes(spans []Span) (all []lane) {
	if len(spans) == 0 {
		return nil
	}
	end := func(s Span) time.Time { return s.Start.Add(time.Duration(s.Seconds * float64(time.Second))) }
	spans = slices.SortedStableFunc(slices.Values(spans), func(a, b Span) int { return a.Start.Compare(b.Start) })
	last := slices.MaxFunc(spans, func(a, b Span) int { return end(a).Compare(end(b)) })
	percent := 100 / max(end(last).Sub(spans[0].Start).Seconds(), 0.001)
	for _, s := range spans {
		i := slices.IndexFunc(all, func(l lane) bool { return l.Name == s.Lane })
		if i < 0 {
			i, all = len(all), append(all, lane{Name: s.Lane})
		}
		all[i].Bars = append(all[i].Bars, bar{s, s.Start.Sub(spans[0].Start).Seconds() * percent, s.Seconds * percent})
	}
	return all
}

// duration prints seconds for people.
func duration(seconds float64) string {
	if seconds < 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return (time.Duration(seconds) * time.Second).String()
}
