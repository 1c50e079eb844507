package source

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/series"
)

// coverPage is the file of an export that lists its patches in order.
const coverPage = "0000-cover-letter.md"

// pullRequest is the body of a pull request for p, in the form of Kubernetes' template. needs are
// the files of the patches that it needs.
func pullRequest(p series.Patch, needs []string) string {
	kind := strings.Replace(cmp.Or(p.Trailer("Kind"), "feature"), "api-change", "feature\n/kind api-change", 1)
	related := "N/A"
	var links []string
	for _, t := range p.Trailers {
		name, value, _ := strings.Cut(t, ": ")
		switch {
		case strings.HasPrefix(name, "KEP-"):
			links = append(links, "- [KEP]: "+value)
			related = "KEP: https://github.com/kubernetes/enhancements/issues/" + name[len("KEP-"):]
		case name != "Kind" && name != "Release-Note" && name != "Fixes-Spec" && name != "Needs":
			links = append(links, "- [Other doc]: "+value)
		}
	}
	notes := "It needs no other patch of the series.\n"
	if len(needs) > 0 {
		notes = "It needs these patches of the series first:\n\n- " + strings.Join(needs, "\n- ") + "\n"
	}
	return fmt.Sprintf(`#### What type of PR is this?

/kind %s

#### What this PR does / why we need it:

%s

#### Which issue(s) this PR is related to:

%s

#### Special notes for your reviewer:

%s
It adds %d lines, and %d of tests. %s

#### Does this PR introduce a user-facing change?

`+"```release-note\n%s\n```"+`

#### Additional documentation e.g., KEPs (Kubernetes Enhancement Proposals), usage docs, etc.:

`+"```docs\n%s\n```\n", kind, p.Body, related, notes, p.Lines, p.TestLines, p.Fate, cmp.Or(p.Trailer("Release-Note"), "NONE"), strings.Join(links, "\n"))
}

// cover is the page that lists the patches in order, with what each needs.
func cover(s series.Series, patches []series.Patch, needs [][]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d patches for %s %s\n\n`git am *.patch` at the tag applies them in this order. The .md file beside each is the body of its pull request.\n"+
		"A patch needs another one that changes the same file, or declares what it uses; what that one needs is left out.\n\n"+
		"| patch | title | lines | of tests | needs | fate |\n|---|---|---|---|---|---|\n", len(patches), s.Project(), s.Release)
	for i, p := range patches {
		var numbers []string
		for _, n := range needs[i] {
			numbers = append(numbers, patches[n].File[:4])
		}
		fmt.Fprintf(&b, "| %.4s | %s | %d | %d | %s | %s |\n", p.File, p.Title, p.Lines, p.TestLines, strings.Join(numbers, ", "), p.Fate)
	}
	return b.String()
}

var (
	comment    = regexp.MustCompile(`(?m)//.*`)
	declared   = regexp.MustCompile(`(?m)^(?:func|type|var|const) ([A-Za-z_]\w*)`)
	member     = regexp.MustCompile(`(?m)^\t([A-Z]\w{5,}) +[\w*\[=]`)
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	qualified  = regexp.MustCompile(`(\w+)\.([A-Z]\w*)|\b([A-Z]\w*):`)
)

// declarations are the names that the lines added to the Go file declare, as uses has them.
func declarations(file, code string) (names []string) {
	dir := path.Dir(file)
	for _, m := range declared.FindAllStringSubmatch(code, -1) {
		names = append(names, dir+"/"+m[1], path.Base(dir)+"."+m[1])
	}
	if base := path.Base(file); base == "types.go" || base == "kube_features.go" {
		for _, m := range member.FindAllStringSubmatch(code, -1) {
			names = append(names, "."+m[1])
		}
	}
	return names
}

// uses are the names that the lines added to the Go file may use: of its own folder
// ("pkg/a/name"), of a package ("a.Name"), or of a field or gate (".Name").
func uses(file, code string) (names []string) {
	for _, name := range identifier.FindAllString(code, -1) {
		names = append(names, path.Dir(file)+"/"+name)
	}
	for _, m := range qualified.FindAllStringSubmatch(code, -1) {
		names = append(names, m[1]+"."+m[2], "."+m[2]+m[3])
	}
	return names
}

// needsOfFixes lists, for each fix, the indexes of those that it needs: none, as it is made on the
// release, or all before it, if its message has Needs.
func needsOfFixes(patches []series.Patch) [][]int {
	needs := make([][]int, len(patches))
	for i, p := range patches {
		if p.Trailer("Needs") == "" {
			continue
		}
		for before := range i {
			needs[i] = append(needs[i], before)
		}
	}
	return needs
}

// dependencies lists, for each patch, the indexes of earlier ones that it needs directly: those
// that change a file of its own, and those that alone declare a name which it uses.
func dependencies(patches []series.Patch) [][]int {
	owners := map[string][]int{} // of a file or name: the patches that change or declare it
	own := func(name string, i int) {
		if !slices.Contains(owners[name], i) {
			owners[name] = append(owners[name], i)
		}
	}
	result := make([][]int, len(patches))
	all := make([]map[int]bool, len(patches)) // with those that the needed ones need
	for i, p := range patches {
		var direct []int
		need := func(name string, alone bool) {
			if by := owners[name]; len(by) > 0 && (!alone || len(by) == 1) && by[len(by)-1] != i {
				direct = append(direct, by[len(by)-1])
			}
		}
		for _, file := range sortedKeys(p.Added) {
			need(file, false)
			own(file, i)
			if path.Ext(file) != ".go" {
				continue
			}
			code := comment.ReplaceAllString(p.Added[file], "")
			for _, name := range declarations(file, code) {
				own(name, i)
			}
			for _, name := range uses(file, code) {
				need(name, true)
			}
		}
		slices.Sort(direct)
		direct = slices.Compact(direct)
		all[i] = map[int]bool{}
		for _, n := range slices.Backward(direct) {
			if !all[i][n] {
				result[i] = append(result[i], n)
			}
			all[i][n] = true
			for m := range all[n] {
				all[i][m] = true
			}
		}
		slices.Sort(result[i])
	}
	return result
}
