package source

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// treeCommit is one commit of a tree's history.
type treeCommit struct {
	id      string
	parents []string
	message string
	kind    kind
	paths   []string // that it changes
}

func (c treeCommit) subject() string {
	subject, _, _ := strings.Cut(c.message, "\n")
	return subject
}

// title describes the commit in errors.
func (c treeCommit) title() string { return c.id[:12] + " (" + c.subject() + ")" }

// history lists the commits from the release to HEAD, oldest first.
func (r repo) history(ctx context.Context) ([]treeCommit, error) {
	entries, err := r.Fields(ctx, "log", "--reverse", "--topo-order", "-z", "--format=%H%n%P%n%B", "HEAD")
	if err != nil {
		return nil, err
	}
	var commits []treeCommit
	for _, entry := range entries {
		id, entry, _ := strings.Cut(entry, "\n")
		parents, text, _ := strings.Cut(entry, "\n")
		c := treeCommit{id: id, parents: strings.Fields(parents), message: text, kind: kindOf(text)}
		if c.kind == kindRelease {
			commits = nil // the user has rebased onto another release
		} else if c.paths, err = r.ChangedIn(ctx, id); err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	if len(commits) == 0 || commits[0].kind != kindRelease {
		return nil, fmt.Errorf("HEAD of %s is not based on the commit of a release: check out the branch %s", r.Dir, treeBranch)
	}
	return commits, nil
}

// check refuses a history that cannot be written as patches.
func (a *assembly) check(commits []treeCommit) error {
	if id := commits[0].id; !slices.Contains(a.state.knownCommits(), id) {
		return fmt.Errorf("the release's commit %s is not the one that podenv made: make the change a commit of its own on top of %s", commits[0].title(), a.state.Steps[0].Commit[:12])
	}
	for _, c := range commits[1:] {
		if err := a.checkCommit(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) checkCommit(c treeCommit) error {
	dir := run.Quote(a.tree.Dir)
	if len(c.parents) > 1 {
		return fmt.Errorf("commit %s is a merge, which no patch can hold: make the history linear with `git -C %s rebase`", c.title(), dir)
	}
	if c.kind != kindPatch {
		// WritePatches skips this commit, so it must not contain what belongs in a patch.
		for _, p := range c.paths {
			if !a.gen.isGenerated(p) {
				return fmt.Errorf("commit %s is podenv's own, but also changes %s: take that out (`git -C %s reset --soft HEAD^` if it is the last) and commit it by itself", c.title(), p, dir)
			}
		}
		return nil
	}
	if toSquash.MatchString(c.message) {
		return fmt.Errorf("commit %s is not squashed yet: `git -C %s rebase --interactive --autosquash --root`", c.title(), dir)
	}
	if series.HasTrailer(c.message) {
		return fmt.Errorf("the message of commit %s names a new file as only a patch file does, for podenv writes that line: delete it", c.title())
	}
	return c.checkMessage()
}

var (
	toSquash = regexp.MustCompile(`^(fixup|squash|amend)!`)
	cutLine  = regexp.MustCompile(`(?m)^(---|diff -|Index: ).*`)
	header   = regexp.MustCompile(`^(From:|Date:|Subject:|>From).*`)
)

// checkMessage refuses a message that `git am` would change.
func (c treeCommit) checkMessage() error {
	if line := cutLine.FindString(c.message); line != "" {
		return fmt.Errorf("the message of commit %s has the line %q, where git am would cut it off: reword it", c.title(), strings.TrimSpace(line))
	}
	_, body, _ := strings.Cut(c.message, "\n")
	if line := header.FindString(strings.TrimLeft(body, "\n")); line != "" {
		return fmt.Errorf("the body of commit %s starts with %q, which git am would take for a header of the mail: reword it", c.title(), line)
	}
	return nil
}
