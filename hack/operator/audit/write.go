package audit

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable writes findings for a person, with a heading, or nothing where there are
// none. A name that strict validation refuses is quoted as in Go, so that its spaces
// and quotes can be seen.
func WriteTable(w io.Writer, findings []Finding) error {
	if len(findings) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE\tKIND\tNAME\tCONTAINER\tVARIABLE\tWHAT")
	for _, f := range findings {
		variable := f.Variable
		if variable != "" && !strict(variable) {
			variable = strconv.QuoteToASCII(variable)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Namespace, f.Kind, f.Name, f.Container, variable, f.What)
	}
	return t.Flush()
}

// tsvEscaper keeps a row a row, should a server ever hold a name that neither rule
// accepts.
var tsvEscaper = strings.NewReplacer("\t", `\t`, "\n", `\n`, "\r", `\r`)

// WriteTSV writes one finding a line, without a heading: namespace, kind, name,
// container, variable, what. A variable's name stands as it is.
func WriteTSV(w io.Writer, findings []Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			f.Namespace, f.Kind, f.Name, f.Container, tsvEscaper.Replace(f.Variable), f.What); err != nil {
			return err
		}
	}
	return nil
}
