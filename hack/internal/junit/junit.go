// Package junit reads JUnit files and counts their results.
package junit

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
)

// Counts counts the results of tests.
type Counts struct {
	Passed, Failed, Skipped int
}

// Total is how many tests there are.
func (c Counts) Total() int { return c.Passed + c.Failed + c.Skipped }

// String is the last line that a test run prints: "N passed, N failed, N skipped".
func (c Counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
}

// Case is one test in a JUnit file.
type Case struct {
	Name      string   `xml:"name,attr"`
	ClassName string   `xml:"classname,attr"`
	Seconds   float64  `xml:"time,attr"`
	Status    string   `xml:"status,attr,omitempty"`
	Failure   *Message `xml:"failure"`
	Error     *Message `xml:"error"`
	Skipped   *Message `xml:"skipped"`
}

// Problem says why the test failed; it is nil if the test did not fail.
func (c Case) Problem() *Message { return cmp.Or(c.Failure, c.Error) }

// Message says why a test failed or was skipped.
type Message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Gist is the beginning of the message, on one line. It is longer than the first line, which
// is often only "Timed out". The message of a Go test is empty or "Failed"; then Gist is the
// beginning of the test's output. It has room for a regular expression and what does not match it.
func (m *Message) Gist() string {
	const maxBytes = 1500
	text := m.Message
	if text == "" || text == "Failed" {
		text = cmp.Or(withoutMarkers(m.Text), text)
	}
	words := strings.Join(strings.Fields(text), " ")
	if len(words) > maxBytes {
		words = strings.ToValidUTF8(words[:maxBytes], "") + "…"
	}
	return words
}

// withoutMarkers returns the output of a Go test without lines such as "=== RUN" and "--- FAIL".
func withoutMarkers(output string) string {
	var text strings.Builder
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			text.WriteString(line + " ")
		}
	}
	return strings.TrimSpace(text.String())
}

// suite is a testsuite or testsuites element: both contain suites or cases.
type suite struct {
	Cases  []Case  `xml:"testcase"`
	Nested []suite `xml:"testsuite"`
}

func (s suite) all() []Case {
	cases := s.Cases
	for _, nested := range s.Nested {
		cases = append(cases, nested.all()...)
	}
	return cases
}

// Read returns the tests in the JUnit file at path. Its root element is a testsuite or
// testsuites.
func Read(path string) ([]Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var top suite
	if err := xml.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("reading the JUnit file %s: %w", path, err)
	}
	return top.all(), nil
}

// Count counts the results of cases.
func Count(cases []Case) Counts {
	var c Counts
	for _, test := range cases {
		switch {
		case test.Problem() != nil:
			c.Failed++
		case test.Skipped != nil:
			c.Skipped++
		default:
			c.Passed++
		}
	}
	return c
}
