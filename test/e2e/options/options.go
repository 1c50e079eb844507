// Package options declares the flags that the suites add to those of Kubernetes' e2e framework,
// for the suites, which read them, and for podenv, which sets them.
package options

import (
	"flag"
	"strings"
	"time"
)

// Options are the values of the flags.
type Options struct {
	JUnit        string        // file for the results
	Kubectl      string        // kubectl of the series under test; its specs are skipped if empty
	Podenv       string        // podenv itself, for specs that operate nodes; they are skipped if empty
	Cluster      string        // podenv's name of the cluster, with Podenv
	Minor        string        // of the cluster, with Podenv
	Older        []string      // minors whose stock kubelets are tested on the cluster, oldest first, with Podenv
	Newer        []string      // minors to which the cluster is upgraded in turn, with Podenv; their specs are skipped if empty
	Walks        int           // how often the soak takes the kubelet up and down, with Podenv
	Starts       int           // containers that start beside each kind of writer of an env file
	SpecTimeout  time.Duration // of each spec; none if zero
	RequireGates []string      // if one of these is off, the specs that need it fail and are not skipped
}

// Prefix begins the name of each flag.
const Prefix = "podenv."

// AddFlags declares the flags, whose default is what o has.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.JUnit, Prefix+"junit", o.JUnit, "`file` for the results, as JUnit XML")
	flags.StringVar(&o.Kubectl, Prefix+"kubectl", o.Kubectl, "the kubectl (a `binary`) under test; its specs are skipped without one")
	flags.StringVar(&o.Podenv, Prefix+"cli", o.Podenv, "podenv `binary` for specs that operate nodes; they are skipped without it")
	flags.StringVar(&o.Cluster, Prefix+"cluster", o.Cluster, "`name` that podenv has for the cluster")
	flags.StringVar(&o.Minor, Prefix+"minor", o.Minor, "`minor` of the cluster, such as v1.33, for specs that operate nodes")
	flags.Var((*list)(&o.Older), Prefix+"older", "older `minors`, separated by commas, whose stock kubelets the suite upgrade goes to")
	flags.Var((*list)(&o.Newer), Prefix+"newer", "newer `minors`, separated by commas, that the suite upgrade takes the cluster to, one after the other")
	flags.IntVar(&o.Walks, Prefix+"walks", o.Walks, "`how often` the soak of the suite upgrade takes the kubelet up and down")
	flags.IntVar(&o.Starts, Prefix+"starts", o.Starts, "`how many` containers start beside each kind of writer in the suite envfiles")
	flags.DurationVar(&o.SpecTimeout, Prefix+"spec-timeout", o.SpecTimeout, "how `long` each spec may take; for ever if 0")
	flags.Var((*list)(&o.RequireGates), Prefix+"require-gates", "`gates`, separated by commas, that must be on: specs that need one fail, rather than being skipped, where it is off")
}

// Args returns the flags with the values of o, as arguments of a suite.
func (o Options) Args() []string {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o.AddFlags(flags)
	var args []string
	flags.VisitAll(func(f *flag.Flag) { args = append(args, "--"+f.Name+"="+f.Value.String()) })
	return args
}

// list is a flag of words separated by commas.
type list []string

// String is also called for the zero value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set replaces the words.
func (l *list) Set(value string) error {
	*l = strings.FieldsFunc(value, func(c rune) bool { return c == ',' })
	return nil
}
