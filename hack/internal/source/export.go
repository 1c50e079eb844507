package source

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the bodies of pull requests
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// Export brings the tree up to date and writes all of its commits as patch files to outDir,
// which it creates if needed: the patches with their new files, and the generated code. `git am`
// of the files, in the order of their names, in a kubernetes/kubernetes checkout at the release's
// tag gives the content of the tree. Beside each patch it writes the body of a pull request, and
// for all of them coverPage. It returns the paths of the patch files.
//
// If s has Fixes it writes those as they are stored: each applies to the release alone.
//
// With fold each patch has the generated code that it causes, which is else a patch of its own.
//
// An outDir that contains anything but an earlier export is an error.
func Export(ctx context.Context, l layout.Layout, s series.Series, outDir string, fold bool, step *progress.Step) (files []string, err error) {
	return newAssembly(l, s, Options{Stock: len(s.Fixes) > 0}, step).exportTree(ctx, outDir, fold)
}

func (a *assembly) exportTree(ctx context.Context, outDir string, fold bool) ([]string, error) {
	if _, err := a.run(ctx); err != nil {
		return nil, err
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	errForeign := refuseForeign(outDir)
	outDir, errOut := filepath.Abs(outDir)
	patches, errPatches := a.series.Describe()
	if err := errors.Join(errForeign, errOut, errPatches); err != nil {
		return nil, err
	}
	from, commits := a.tree, []string{}
	for _, s := range a.state.Steps[1:] {
		commits = append(commits, s.Commit)
	}
	if fold {
		from, commits, err = a.fold(ctx)
		defer os.RemoveAll(from.Dir)
		if err != nil {
			return nil, err
		}
	}
	needs := dependencies(patches)
	if a.options.Stock {
		needs = stated(patches)
	}
	files := map[string][]byte{coverPage: []byte(cover(a.series, patches, needs))}
	var paths []string
	for i, commit := range commits {
		a.step.Now("writing patch %d of %d", i+1, len(commits))
		name, patch, err := from.formatPatch(ctx, commit, i+1, nil)
		if err == nil && a.options.Stock {
			patch, err = os.ReadFile(a.series.Fixes[i])
		}
		if err != nil {
			return nil, err
		}
		files[name] = series.WithoutTrailers(patch)
		paths = append(paths, filepath.Join(outDir, name))
		if i == len(patches) {
			break // generated code
		}
		var first []string
		for _, n := range needs[i] {
			first = append(first, patches[n].Title)
		}
		if others := patches[i].Trailer("Needs"); others != "" && !a.options.Stock {
			first = append(first, others)
		}
		if files[strings.TrimSuffix(name, ".patch")+".md"], err = pullRequest(a.series.Project(), patches[i], first); err != nil {
			return nil, err
		}
	}
	tmp := filepath.Join(filepath.Dir(outDir), ".new-"+filepath.Base(outDir))
	defer os.RemoveAll(tmp)
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return nil, err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(tmp, name), content, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.RemoveAll(outDir); err != nil {
		return nil, err
	}
	return paths, os.Rename(tmp, outDir)
}

// fold makes commits of the patches that have the generated code which each causes, in a
// repository of its own. It returns that and the ids of the commits.
func (a *assembly) fold(ctx context.Context) (r repo, folded []string, err error) {
	r = repo{gitrepo.Repo{Dir: filepath.Join(filepath.Dir(a.tree.Dir), ".fold-"+filepath.Base(a.tree.Dir)), Log: a.step.Log()}}
	if err := os.RemoveAll(r.Dir); err != nil { // of an interrupted export
		return r, nil, err
	}
	if _, err := r.cloneRelease(ctx, a.tree); err != nil {
		return r, nil, err
	}
	inFold := *a
	inFold.tree = r
	parent := a.state.Steps[0].Commit
	for _, s := range a.state.Steps[1:] {
		if s.Kind != kindPatch {
			break
		}
		a.step.Now("patch %d of %d: generated code", len(folded)+1, a.state.applied())
		if err := r.Run(ctx, "checkout", "--quiet", "--force", "--detach", s.Commit); err != nil {
			return r, nil, err
		}
		if _, err := inFold.stageGenerated(ctx); err != nil {
			return r, nil, err
		}
		if err := r.Run(ctx, "reset", "--quiet", "--soft", parent); err != nil {
			return r, nil, err
		}
		if err := r.Run(ctx, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--reuse-message="+s.Commit); err != nil {
			return r, nil, err
		}
		if parent, err = r.head(ctx); err != nil {
			return r, nil, err
		}
		folded = append(folded, parent)
	}
	diff, err := r.Quiet(ctx, "diff", "--stat", parent, a.state.last())
	if err == nil && diff != "" {
		err = fmt.Errorf("the last patch with its generated code is not the tree of series %s: export without --fold-generated:\n%s", a.series.Name, diff)
	}
	return r, folded, err
}

// refuseForeign returns an error if dir contains anything but the files of an earlier export.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !exported.MatchString(e.Name()) {
			return fmt.Errorf("%s has %s in it, which no export has written: choose an empty folder", dir, e.Name())
		}
	}
	return nil
}

// exported matches the names of the files of an export.
var exported = regexp.MustCompile(`^\d{4}-.*\.(patch|md)$`)

// coverPage is the file of an export that lists its patches in order.
const coverPage = "0000-cover-letter.md"

//go:embed pullrequest.md.tmpl
var bodies string

var pullRequests = template.Must(template.New("").Parse(bodies))

// link matches a trailer with the address of a document: its name, the number if that is a KEP, and the address.
var link = regexp.MustCompile(`(?m)^(KEP-(\d+)|\S+): (https://\S+)`)

// pullRequest is the body of a pull request for p, in the form of the project's template. needs
// are the titles of the patches that it needs.
func pullRequest(project string, p series.Patch, needs []string) ([]byte, error) {
	var b bytes.Buffer
	err := pullRequests.ExecuteTemplate(&b, project, struct {
		series.Patch
		Needs []string
		Links [][]string
	}{p, needs, link.FindAllStringSubmatch(strings.Join(p.Trailers, "\n"), -1)})
	return b.Bytes(), err
}

// cover is the page that lists the patches in order, with what each needs.
func cover(s series.Series, patches []series.Patch, needs [][]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d patches for %s %s\n\n`git am --3way *.patch` at the tag applies them in this order. The .md file beside each is the body of its pull request.\n"+
		"A patch needs another one that changes the same file, or declares what it uses; what that one needs is left out.\n\n"+
		"| patch | title | lines | of tests | needs | fate |\n|---|---|---|---|---|---|\n", len(patches), s.Project(), s.Release)
	for i, p := range patches {
		var numbers []string
		for _, n := range needs[i] {
			numbers = append(numbers, patches[n].File[:4])
		}
		fmt.Fprintf(&b, "| %.4s | %s | %d | %d | %s | %s |\n", p.File, p.Title, p.Lines, p.TestLines, cmp.Or(p.Trailer("Needs"), strings.Join(numbers, ", ")), p.Fate)
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

// stated lists, for each fix, the indexes of those that come first: all before it if its message has Needs.
func stated(fixes []series.Patch) [][]int {
	result := make([][]int, len(fixes))
	for i, p := range fixes {
		for n := 0; n < i && p.Trailer("Needs") != ""; n++ {
			result[i] = append(result[i], n)
		}
	}
	return result
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
