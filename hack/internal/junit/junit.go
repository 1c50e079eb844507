// Package junit counts the results in JUnit files and writes one of its own.
package junit

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// Counts are the results of some tests.
type Counts struct {
	Passed, Failed, Skipped int
}

// Add returns the sum of c and other.
func (c Counts) Add(other Counts) Counts {
	return Counts{c.Passed + other.Passed, c.Failed + other.Failed, c.Skipped + other.Skipped}
}

// Total is how many tests there are.
func (c Counts) Total() int { return c.Passed + c.Failed + c.Skipped }

// String is the closing line of a test run: "N passed, N failed, N skipped".
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

// Message says why a test failed or was skipped.
type Message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Gist is the beginning of the message, on one line. A first line alone is often no more
// than "Timed out". Of a Go test the message says "Failed" at most; then it is the
// beginning of what the test printed.
func (m *Message) Gist() string {
	const most = 500
	text := m.Message
	if text == "" || text == "Failed" {
		text = cmp.Or(printed(m.Text), text)
	}
	words := strings.Join(strings.Fields(text), " ")
	if len(words) > most {
		words = strings.ToValidUTF8(words[:most], "") + "…"
	}
	return words
}

// printed is output of a Go test without the lines that frame it.
func printed(output string) string {
	var own strings.Builder
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			own.WriteString(line + " ")
		}
	}
	return strings.TrimSpace(own.String())
}

type suite struct {
	XMLName xml.Name `xml:"testsuite"`
	Name    string   `xml:"name,attr"`
	Tests   int      `xml:"tests,attr"`
	Failed  int      `xml:"failures,attr"`
	Skips   int      `xml:"skipped,attr"`
	Seconds float64  `xml:"time,attr"`
	Cases   []Case   `xml:"testcase"`
	Nested  []suite  `xml:"testsuite"`
}

// Read returns the tests in the JUnit file at path, whose outermost element may
// be a testsuite or testsuites.
func Read(path string) ([]Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	// Both outermost elements have suites or cases inside, so one type reads both.
	var top struct {
		Cases  []Case  `xml:"testcase"`
		Nested []suite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("reading the JUnit file %s: %w", path, err)
	}
	return flatten(top.Cases, top.Nested), nil
}

func flatten(cases []Case, nested []suite) []Case {
	for _, s := range nested {
		cases = append(cases, flatten(s.Cases, s.Nested)...)
	}
	return cases
}

// Count adds up cases.
func Count(cases []Case) Counts {
	var c Counts
	for _, test := range cases {
		switch {
		case test.Failure != nil || test.Error != nil:
			c.Failed++
		case test.Skipped != nil:
			c.Skipped++
		default:
			c.Passed++
		}
	}
	return c
}

// Write writes cases as the suite called name to path, atomically.
func Write(path, name string, took time.Duration, cases []Case) error {
	counts := Count(cases)
	data, err := xml.MarshalIndent(suite{
		Name: name, Tests: counts.Total(), Failed: counts.Failed, Skips: counts.Skipped,
		Seconds: took.Seconds(), Cases: cases,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}
