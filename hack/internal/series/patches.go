package series

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"podenv.dev/hack/internal/layout"
)

// MaxPatchLines is how many lines a patch may add, without tests: more is too much for one review.
const MaxPatchLines = 800

// fate matches the trailer of a message that says how long a patch is carried.
var fate = regexp.MustCompile(`^(Carry: until|Drop: when) \S|^Upstream: not yet sent`)

// trailer matches the first line of a trailer. Other lines continue it.
var trailer = regexp.MustCompile(`^[A-Z][A-Za-z0-9-]*: `)

// own matches the trailers that are podenv's, not upstream's. What pull requests need of them is in their bodies.
var own = regexp.MustCompile(`^(Carry|Drop|Upstream|Kind|Release-Note|Fixes-Spec|Needs|Weakness|New-File): `)

// WithoutTrailers returns the patch without podenv's own trailers in its message.
func WithoutTrailers(patch []byte) []byte {
	end, drop := messageEnd(patch), false
	start := bytes.LastIndex(bytes.TrimRight(patch[:end], "\n"), []byte("\n\n")) + 1
	kept := slices.Clone(patch[:start])
	for line := range bytes.Lines(patch[start:end]) {
		if drop = own.Match(line) || drop && !trailer.Match(line); !drop {
			kept = append(kept, line...)
		}
	}
	return slices.Concat(bytes.TrimRight(kept, "\n"), []byte("\n\n"), patch[end:])
}

// Patch describes a patch.
type Patch struct {
	Series string `json:"series"`
	File   string `json:"file"` // in the series' folder
	Title  string `json:"title"`
	// Lines and TestLines are what it adds, new files with their license header included.
	Lines     int    `json:"lines"`
	TestLines int    `json:"testLines"`
	Fate      string `json:"fate"`
	// Body is the message without title and trailers; Trailers are the others, one line each.
	Body     string   `json:"-"`
	Trailers []string `json:"-"`
	// Added are the lines that it adds to each file.
	Added map[string]string `json:"-"`
	// NewFiles are the new files that the message names, Diff the changes of other files.
	NewFiles []string        `json:"-"`
	Diff     []*gitdiff.File `json:"-"`
	// StoredLines is the length of the patch file.
	StoredLines int `json:"-"`
}

// Describe describes the patches of s, in the order of application.
func (s Series) Describe() ([]Patch, error) {
	var patches []Patch
	for _, path := range s.Patches() {
		p, err := s.describe(path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		patches = append(patches, p)
	}
	return patches, nil
}

func (s Series) describe(path string) (Patch, error) {
	p := Patch{Series: s.Name, File: filepath.Base(path), Added: map[string]string{}}
	stored, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	p.StoredLines = bytes.Count(stored, []byte("\n"))
	rest, newFiles := SplitMessage(stored)
	diff, preamble, err := gitdiff.Parse(bytes.NewReader(rest))
	if err != nil {
		return p, err
	}
	p.NewFiles, p.Diff = newFiles, diff
	message, err := gitdiff.ParsePatchHeader(preamble)
	if err != nil {
		return p, err
	}
	p.Title, p.Body = message.Title, strings.TrimSpace(message.Body)
	p.cutTrailers()
	for _, f := range diff {
		for _, fragment := range f.TextFragments {
			for _, line := range fragment.Lines {
				if line.Op == gitdiff.OpAdd {
					p.Added[f.NewName] += line.Line
				}
			}
		}
	}
	for _, name := range newFiles {
		content, err := os.ReadFile(filepath.Join(s.NewFileFolder(name), filepath.FromSlash(name)))
		if err != nil {
			return p, fmt.Errorf("it adds a new file: restore that, or delete its line from the message: %w", err)
		}
		p.Added[name] = string(s.Header.Add(name, content))
	}
	for name, text := range p.Added {
		if IsTest(name) {
			p.TestLines += strings.Count(text, "\n")
		} else {
			p.Lines += strings.Count(text, "\n")
		}
	}
	return p, nil
}

// cutTrailers moves the trailers, the last paragraph, from the body to the other fields.
func (p *Patch) cutTrailers() {
	at := strings.LastIndex("\n\n"+p.Body, "\n\n")
	if !trailer.MatchString(p.Body[at:]) {
		return
	}
	for line := range strings.Lines(p.Body[at:]) {
		if line = strings.TrimSpace(line); trailer.MatchString(line) {
			p.Trailers = append(p.Trailers, line)
		} else {
			p.Trailers[len(p.Trailers)-1] += " " + line
		}
	}
	p.Body = strings.TrimSpace(p.Body[:at])
	if i := slices.IndexFunc(p.Trailers, fate.MatchString); i >= 0 {
		p.Fate = p.Trailers[i]
		p.Trailers = slices.Delete(p.Trailers, i, i+1)
	}
}

// Trailer is the value of the trailer called name; empty if there is none.
func (p Patch) Trailer(name string) string {
	for _, t := range p.Trailers {
		if value, ok := strings.CutPrefix(t, name+": "); ok {
			return value
		}
	}
	return ""
}

var testFolder = regexp.MustCompile(`(^|/)(testdata|testing|featurestest)/|^test/`)

// IsTest reports whether the file at path in a tree is for tests only.
func IsTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || testFolder.MatchString(path)
}

// minorOfGate matches the minor in which a gate or an API has begun, as upstream's lists have it.
var minorOfGate = regexp.MustCompile(`"1\.\d+"`)

// removal is the minor that an alpha API is to be gone in, which stands there, too.
var removal = regexp.MustCompile(`RemovedVersion: +"1\.\d+"`)

// CheckPatches finds patches without a fate, those that add more than MaxPatchLines, and those
// whose gates or APIs begin in another minor than that of their series.
func CheckPatches(l layout.Layout) error {
	all, err := LoadAll(l)
	if err != nil {
		return err
	}
	var found []error
	for _, s := range all {
		patches, err := s.Describe()
		if err != nil {
			return err
		}
		for _, p := range patches {
			if p.Fate == "" {
				found = append(found, fmt.Errorf("%s/%s has no fate: end its message with a line \"Carry: until ...\", \"Upstream: not yet sent\" or \"Drop: when ...\"", Folder(s.Name), p.File))
			}
			if kind := p.Trailer("Kind"); (kind == "bug" || s.IsTekton()) && (kind == "" || p.Trailer("Release-Note") == "") {
				found = append(found, fmt.Errorf("%s/%s has no line \"Kind: ...\", or no \"Release-Note: ...\": a fix, and each patch of Tekton, has both", Folder(s.Name), p.File))
			}
			if p.Lines > MaxPatchLines {
				found = append(found, fmt.Errorf("%s/%s adds %d lines without tests, more than %d: split it, which can be by its new files alone", Folder(s.Name), p.File, p.Lines, MaxPatchLines))
			}
			for name, text := range p.Added {
				for _, minor := range minorOfGate.FindAllString(removal.ReplaceAllString(text, ""), -1) {
					if !s.IsTekton() && "v"+strings.Trim(minor, `"`) != s.Name {
						found = append(found, fmt.Errorf("%s/%s names the minor %s in %s: what it adds begins in %s, so correct the line in trees/%[5]s, amend the commit, and run podenv patches", Folder(s.Name), p.File, minor, name, s.Name))
					}
				}
			}
		}
	}
	return errors.Join(found...)
}

// FixesFolder is the folder of the patches of upstream's own code for the minor, relative to the
// root of the repository. They apply to the release of its series, each alone or all in order.
func FixesFolder(minor string) string { return "patches/upstream/" + minor }

// MaxFixLines is how many lines a fix may add and remove, tests included.
const MaxFixLines = 150

// FindFixes lists the patches that paths name, files or folders of them, each once. All before it in
// its folder come with a patch whose message has Needs.
func FindFixes(paths []string) (fixes []string, err error) {
	for _, path := range paths {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		found := []string{path}
		if stat, err := os.Stat(path); err != nil {
			return nil, err
		} else if stat.IsDir() {
			found = Series{Dir: path}.Patches()
		} else if message, err := os.ReadFile(path); err != nil {
			return nil, err
		} else if bytes.Contains(message, []byte("\nNeeds: ")) {
			folder := Series{Dir: filepath.Dir(path)}.Patches()
			found = folder[:slices.Index(folder, path)+1]
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no *.patch files", path)
		}
		fixes = append(fixes, slices.DeleteFunc(found, func(fix string) bool { return slices.Contains(fixes, fix) })...)
	}
	return fixes, nil
}
