package options

import (
	"flag"
	"reflect"
	"testing"
	"time"
)

func TestASuiteReadsWhatPodenvSets(t *testing.T) {
	set := Options{
		JUnit: "j.xml", Kubectl: "/bin/kubectl", Podenv: "/bin/podenv", Cluster: "c", Minor: "v1.33", Older: []string{"v1.31", "v1.32"},
		Newer: []string{"v1.34"}, Walks: 2, Starts: 3, SpecTimeout: time.Minute, RequireGates: []string{"A", "B"},
	}
	all := reflect.ValueOf(set)
	for i := range all.NumField() {
		if all.Field(i).IsZero() {
			t.Errorf("the test sets no %s", all.Type().Field(i).Name)
		}
	}
	var read Options
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	read.AddFlags(flags)
	if err := flags.Parse(set.Args()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, set) {
		t.Errorf("got %+v, want %+v", read, set)
	}
}

func TestDefaultsAreTheValues(t *testing.T) {
	read := Options{Walks: 1, Older: []string{"v1.32"}}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	read.AddFlags(flags)
	if err := flags.Parse([]string{"--podenv.starts=7"}); err != nil {
		t.Fatal(err)
	}
	if want := (Options{Walks: 1, Starts: 7, Older: []string{"v1.32"}}); !reflect.DeepEqual(read, want) {
		t.Errorf("got %+v, want %+v", read, want)
	}
}
