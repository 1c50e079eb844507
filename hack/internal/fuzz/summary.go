package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"podenv.dev/hack/internal/junit"
)

// Summary prints a table of the results, then what failed, the path of the report, and
// last the line "N passed, N failed, N skipped", which it returns.
func Summary(w io.Writer, report string, results []Result) junit.Counts {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TARGET\tEXECUTIONS\tNEW INTERESTING\tTIME\tRESULT")
	var cases []junit.Case
	for _, r := range results {
		cases = append(cases, r.Case())
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", r.Target, Grouped(r.Executions), r.Interesting, r.Took.Round(time.Second), r.verdict())
	}
	table.Flush()
	for _, r := range results {
		if err := r.Error(); err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintf(w, "\nFAILED  %s\n%v\n", r.Target, err)
		}
	}
	counts := junit.Count(cases)
	fmt.Fprintf(w, "\nJUnit report: %s\n%s\n", report, counts)
	return counts
}

func (r Result) verdict() string {
	switch {
	case errors.Is(r.Err, context.Canceled):
		return "interrupted"
	case r.Err != nil:
		return "error"
	case r.Failure != "":
		return "FAILED"
	default:
		return "passed"
	}
}
