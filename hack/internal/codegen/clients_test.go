package codegen

import (
	"slices"
	"testing"
)

func TestServedGroups(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{groupList: `#!/usr/bin/env bash

KUBE_AVAILABLE_GROUP_VERSIONS="${KUBE_AVAILABLE_GROUP_VERSIONS:-\
v1 \
admission.k8s.io/v1 \
flowcontrol.apiserver.k8s.io/v1 \
internal.apiserver.k8s.io/v1alpha1 \
imagepolicy.k8s.io/v1alpha1 \
apps/v1 \
}"

# not all are served
KUBE_NONSERVER_GROUP_VERSIONS="
 imagepolicy.k8s.io/v1alpha1\
 admission.k8s.io/v1\
"
export KUBE_NONSERVER_GROUP_VERSIONS
`})
	got, err := servedGroups(&view{dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"core/v1", "flowcontrol/v1", "apiserverinternal/v1alpha1", "apps/v1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestServedGroupsOfAnotherFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{groupList: "echo\n"})
	if groups, err := servedGroups(&view{dir: dir}); err == nil {
		t.Errorf("got %q, want an error", groups)
	}
}
