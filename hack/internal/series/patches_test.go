package series

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
)

func TestPatchesAreDescribedByTheirMessageAndFiles(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":        pin133,
		"patches/boilerplate.go.txt":  "// one\n// two\n",
		"patches/new/pkg/a_test.go":   "package a\n",
		"pkg/kubelet/envfile/keys.go": "package envfile\n",
		"patches/v1.33/0001-a.patch": "From: Ada <ada@example.com>\nDate: Sat, 21 Nov 2026 04:17:24 +0000\nSubject: [PATCH] EnvFiles: a\n\nWhy.\n\nMore: of it.\n\n" +
			"KEP-3721: https://kep.k8s.io/3721\nUpstream: not yet sent. Drop it when\nit is there.\n\nNew-File: pkg/a_test.go\nNew-File: pkg/kubelet/envfile/keys.go\n\n" +
			"diff --git a/b.go b/b.go\n--- a/b.go\n+++ b/b.go\n@@ -1 +1,2 @@\n-old\n+new\n+newer\n",
	})
	s, err := Load(l, "v1.33")
	if err != nil {
		t.Fatal(err)
	}
	patches, err := s.Describe()
	if err != nil {
		t.Fatal(err)
	}
	p := patches[0]
	if p.Title != "EnvFiles: a" || p.Body != "Why.\n\nMore: of it." || p.Fate != "Upstream: not yet sent. Drop it when it is there." || p.Trailer("KEP-3721") != "https://kep.k8s.io/3721" {
		t.Errorf("the message is %+v", p)
	}
	if p.Lines != 2+4 || p.TestLines != 4 || p.Added["b.go"] != "new\nnewer\n" {
		t.Errorf("it adds %d lines and %d of tests: %q", p.Lines, p.TestLines, p.Added)
	}
	if err := CheckPatches(l); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(l.Root, "patches/new/pkg/a_test.go")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Describe(); err == nil || !strings.Contains(err.Error(), "0001-a.patch: it adds a new file: restore that") {
		t.Errorf("without its new file: %v", err)
	}
}

func TestTrailersOfPodenvAreLeftOut(t *testing.T) {
	const head, diff = "From: Ada <ada@example.com>\nSubject: [PATCH] a\n b\n\n", "diff --git a/b b/b\n+Kind: of\n"
	for message, want := range map[string]string{
		"": "", "Why.\n\n": "Why.\n\n",
		"Why.\n\nKind: in the body.\n\nKind: bug\nDrop: when\nit is there.\n\n":          "Why.\n\nKind: in the body.\n\n",
		"Kind: bug\nKEP-1: https://a\nRelease-Note: It\nworks.\nSigned-off-by: Ada\n\n":  "KEP-1: https://a\nSigned-off-by: Ada\n\n",
		"Carry: until\nUpstream: not yet sent\nFixes-Spec: a\nNeeds: b\nNew-File: c\n\n": "",
	} {
		if got := string(WithoutTrailers([]byte(head + message + diff))); got != head+want+diff {
			t.Errorf("of %q:\n%s", message, got)
		}
	}
}

func TestPatchesThatMayNotStayAsTheyAreAreFound(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":              pin133,
		"patches/new/large.go":              strings.Repeat("//\n", MaxPatchLines+1),
		"patches/new/large_test.go":         strings.Repeat("//\n", MaxPatchLines+1),
		"patches/v1.33/0001-a.patch":        "From: Ada <ada@example.com>\nSubject: [PATCH] a\n\nDrop when: it is there.\n\nNew-File: large_test.go\n\n",
		"patches/v1.33/0002-b.patch":        "From: Ada <ada@example.com>\nSubject: [PATCH] b\n\nDrop: when it is there.\n\nNew-File: large.go\n\n",
		"patches/v1.33/0003-c.patch":        "From: Ada <ada@example.com>\nSubject: [PATCH] c\n\n\ndiff --git a/b.go b/b.go\n--- a/b.go\n+++ b/b.go\n@@ -1 +1 @@\n-old\n+new\n",
		"patches/v1.33/0004-d.patch":        "From: Ada <ada@example.com>\nSubject: [PATCH] d\n\nDrop: when it is there.\n\ndiff --git a/d.go b/d.go\n--- a/d.go\n+++ b/d.go\n@@ -1,2 +1,2 @@\n-Version(\"1.31\")\n-Version(\"1.30\")\n+Version(\"1.33\")\n+Version(\"1.32\")\n",
		"patches/v1.33/0005-e.patch":        "From: Ada <ada@example.com>\nSubject: [PATCH] e\n\nKind: bug\nDrop: when it is there.\n\ndiff --git a/b.go b/b.go\n--- a/b.go\n+++ b/b.go\n@@ -1 +1 @@\n-old\n+new\n",
		"patches/tekton/v1.10/go.mod":       pinTekton,
		"patches/tekton/v1.10/0001-f.patch": "From: Ada <ada@example.com>\nSubject: [PATCH] f\n\nRelease-Note: NONE\nDrop: when it is there.\n\ndiff --git a/b.go b/b.go\n--- a/b.go\n+++ b/b.go\n@@ -1 +1 @@\n-old\n+new\n",
	})
	err := CheckPatches(l)
	if err == nil {
		t.Fatal("nothing is found")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{"patches/v1.33/0001-a.patch has no fate", "patches/v1.33/0002-b.patch adds 801 lines without tests", "patches/v1.33/0003-c.patch has no fate", `patches/v1.33/0004-d.patch names the minor "1.32" in d.go`,
		`patches/v1.33/0005-e.patch has no line "Kind: ..."`, `patches/tekton/v1.10/0001-f.patch has no line "Kind: ..."`}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("found %q", got)
	}
}

func TestPatchesOfThisRepositoryHaveAFateAndASizeForReview(t *testing.T) {
	if err := CheckPatches(layout.MustFind()); err != nil {
		t.Error(err)
	}
}

func TestPatchesToReportPrivatelySaySoTwice(t *testing.T) {
	all, err := LoadAll(layout.MustFind())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		patches, err := s.Describe()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range patches {
			// Only the first line is in an export.
			if strings.HasPrefix(p.Body, "Report privately first, ") != strings.Contains(p.Fate, "Private report first.") {
				t.Errorf("%s/%s: its fate is %q, its message begins with %.40q", s.Name, p.File, p.Fate, p.Body)
			}
		}
	}
}
