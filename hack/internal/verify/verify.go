// Package verify runs everything that proves the project, and adds it up.
package verify

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/progress"
)

// Check proves one thing, or many that it counts itself.
type Check struct {
	// Name is unique; the check's JUnit file and log are called after it.
	Name string
	// Group is what --only chooses by.
	Group string
	// Needs are the names of checks without which this one cannot run. They stand
	// before it.
	Needs []string
	// Lane is which checks this one is not run beside: those of one lane run one after
	// another, those of different lanes at the same time.
	Lane string
	// Run returns the tests that it ran. A check that is one test returns nil, and
	// its error says whether it passed. An error beside tests says what broke as a
	// whole; failed tests alone need none.
	Run func(context.Context, *progress.Step) ([]junit.Case, error)
}

// Result is what a Check found.
type Result struct {
	Check  Check
	Cases  []junit.Case
	Took   time.Duration
	Reason string // why it did not run; empty where it did
}

// Counts adds up the result's tests.
func (r Result) Counts() junit.Counts { return junit.Count(r.Cases) }

// Runner runs checks, those of a lane one after another.
type Runner struct {
	Reporter *progress.Reporter
	// JUnit is the folder that gets one report a check.
	JUnit string
}

// Run runs checks, each after those that it needs and those before it in its lane. One
// that needs a failed one is counted as skipped. The results are in the order of the
// checks, and without those that ctx kept from being run. The error is ctx's, or one of
// writing the reports; failures are in the results.
func (r *Runner) Run(ctx context.Context, checks []Check) ([]Result, error) {
	ended := map[string]chan struct{}{}
	lanes := map[string][]int{}
	for i, check := range checks {
		ended[check.Name] = make(chan struct{})
		lanes[check.Lane] = append(lanes[check.Lane], i)
	}
	results := make([]Result, len(checks))
	failed := &set{}
	group, ctx := errgroup.WithContext(ctx)
	for _, lane := range lanes {
		group.Go(func() error {
			for _, i := range lane {
				for _, before := range checks[i].Needs {
					// Of those that are not run at all none fails.
					if wait, runs := ended[before]; runs {
						select {
						case <-wait:
						case <-ctx.Done():
							return ctx.Err()
						}
					}
				}
				result, err := r.one(ctx, checks[i], failed)
				if err != nil {
					return err
				}
				results[i] = result
				close(ended[checks[i].Name])
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(results, func(r Result) bool { return r.Check.Run == nil }), err
}

// one runs a check whose needs have ended, and writes its report.
func (r *Runner) one(ctx context.Context, check Check, failed *set) (Result, error) {
	result := Result{Check: check}
	if missing := failed.firstOf(check.Needs); missing != "" {
		result.Reason = "needs " + missing + ", which failed"
		result.Cases = []junit.Case{{Name: check.Name, ClassName: check.Group, Skipped: &junit.Message{Message: result.Reason}}}
		failed.add(check.Name)
	} else {
		r.run(ctx, check, &result)
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if result.Counts().Failed > 0 {
			failed.add(check.Name)
		}
	}
	file := filepath.Join(r.JUnit, strings.ReplaceAll(check.Name, " ", "-")+".xml")
	return result, junit.Write(file, check.Name, result.Took, result.Cases)
}

// set is a set of names that several lanes use.
type set struct {
	mu    sync.Mutex
	names []string
}

func (s *set) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, name)
}

// firstOf returns the first of names that is in the set, or nothing.
func (s *set) firstOf(names []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if slices.Contains(s.names, name) {
			return name
		}
	}
	return ""
}

func (r *Runner) run(ctx context.Context, check Check, result *Result) {
	step := r.Reporter.Step(check.Name)
	start := time.Now()
	cases, err := check.Run(ctx, step)
	result.Took = time.Since(start)
	// A check that fails as a whole is a failed test, beside whatever it counted.
	if err != nil || len(cases) == 0 {
		whole := junit.Case{Name: check.Name, ClassName: check.Group, Seconds: result.Took.Seconds()}
		if err != nil {
			whole.Failure = &junit.Message{Message: firstLine(err.Error()), Text: err.Error()}
		}
		cases = append(cases, whole)
	}
	result.Cases = cases
	if counts := junit.Count(cases); err == nil && counts.Failed > 0 {
		err = fmt.Errorf("%s", counts)
	}
	step.End(err) //nolint:errcheck // the error is in the cases
	// Whoever follows the run, or sees only a part of it, need not wait for the summary.
	for i, c := range failures(cases) {
		if i == maxShown {
			r.Reporter.Print("        and more, in the summary")
			break
		}
		r.Reporter.Print(fmt.Sprintf("        %s: %s", c.Name, failureOf(c).Gist()))
	}
}

func failures(cases []junit.Case) []junit.Case {
	return slices.DeleteFunc(slices.Clone(cases), func(c junit.Case) bool { return failureOf(c) == nil })
}

// failureOf is what a test failed with, or nil.
func failureOf(c junit.Case) *junit.Message {
	if c.Failure != nil {
		return c.Failure
	}
	return c.Error
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// maxShown is how many failures of one check the summary names.
const maxShown = 10

// Summary prints a table of results, what failed and why, what was skipped and
// why, and last the line "N passed, N failed, N skipped". It returns the sum.
func Summary(w io.Writer, results []Result, junitDir string) junit.Counts {
	var sum junit.Counts
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\nCHECK\tPASSED\tFAILED\tSKIPPED\tTIME")
	for _, r := range results {
		c := r.Counts()
		sum = sum.Add(c)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\n", r.Check.Name, c.Passed, c.Failed, c.Skipped, r.Took.Round(100*time.Millisecond))
	}
	table.Flush()
	printCases(w, results, "FAILED", failureOf, true)
	printCases(w, results, "SKIPPED", func(c junit.Case) *junit.Message { return c.Skipped }, false)
	fmt.Fprintf(w, "\nJUnit reports: %s\n%s\n", junitDir, sum)
	return sum
}

// printCases lists the cases that have a message of one kind.
func printCases(w io.Writer, results []Result, title string, of func(junit.Case) *junit.Message, text bool) {
	for _, r := range results {
		shown := 0
		for _, c := range r.Cases {
			m := of(c)
			if m == nil {
				continue
			}
			if shown++; shown > maxShown {
				continue
			}
			fmt.Fprintf(w, "\n%s  %s: %s\n", title, r.Check.Name, c.Name)
			body := m.Message
			if text && strings.TrimSpace(m.Text) != "" {
				body = m.Text
			}
			fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(lastLines(strings.TrimSpace(body), 30), "\n", "\n  "))
		}
		if shown > maxShown {
			fmt.Fprintf(w, "\n%s  %s: and %d more, in the JUnit report\n", title, r.Check.Name, shown-maxShown)
		}
	}
}

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	if len(lines) > n {
		lines = append([]string{"…"}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}
