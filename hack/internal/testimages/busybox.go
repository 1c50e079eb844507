package testimages

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

//go:embed busybox.lock
var busyboxLock []byte

//go:embed printenv.awk
var printenv []byte

// busybox is the image with a shell.
func busybox(ctx context.Context, l layout.Layout, step *progress.Step) (image.Spec, error) {
	packages, err := debian.ParseLock(busyboxLock)
	if err != nil {
		return image.Spec{}, err
	}
	debs, err := debian.Fetch(ctx, l.Cache("debs"), packages, step)
	if err != nil {
		return image.Spec{}, fmt.Errorf("packages pinned in hack/internal/testimages/busybox.lock: %w", err)
	}
	var program, terms []byte
	for _, deb := range debs {
		entries, err := debian.Files(ctx, deb)
		if err != nil {
			return image.Spec{}, err
		}
		for _, e := range entries {
			switch {
			case e.Mode.IsRegular() && e.Path == "/usr/bin/busybox":
				program = e.Data
			case e.Mode.IsRegular() && filepath.Base(e.Path) == "copyright":
				terms = e.Data
			}
		}
	}
	if program == nil {
		return image.Spec{}, errors.New("the package busybox-static has no busybox in /bin")
	}
	applets, err := appletsOf(program)
	if err != nil {
		return image.Spec{}, err
	}
	files := append(image.MinimalFiles(),
		image.File{Path: "/bin/busybox", Mode: 0o755, Data: program},
		image.File{Path: "/usr/share/doc/busybox-static/copyright", Mode: 0o644, Data: terms},
		image.File{Path: "/usr/bin/env", Link: "/bin/busybox"},
		image.File{Path: "/root", Mode: fs.ModeDir | 0o700},
	)
	for _, applet := range applets {
		if applet != "busybox" { // the program itself
			files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
		}
	}
	if !slices.Contains(applets, "printenv") {
		files = append(files, image.File{Path: "/bin/printenv", Mode: 0o755, Data: printenv})
	}
	return image.Spec{Name: Busybox, Files: files, Config: v1.Config{Cmd: []string{"sh"}}}, nil
}

// appletsOf returns the names under which program, a busybox, can be called. It reads the
// program's own table of them: sorted, each name ends with a NUL byte, the list with another.
// `busybox --list` prints the same, but a file that this process has just written cannot
// be executed ("text file busy") while another goroutine starts a command.
func appletsOf(program []byte) ([]string, error) {
	const first = "\x00[\x00[[\x00"
	if at := bytes.Index(program, []byte(first)); at >= 0 {
		table, _, ended := bytes.Cut(program[at+1:], []byte("\x00\x00"))
		applets := strings.Split(string(table), "\x00")
		if ended && slices.Contains(applets, "sh") {
			return applets, nil
		}
	}
	return nil, errors.New("busybox has no table of its applets that starts with [ and [[ and has sh: go back to the version that busybox.lock had")
}

// RefreshLock pins busybox at the version that the Debian archive has now. It says
// which file it wrote, and whether that changed anything.
func RefreshLock(ctx context.Context, l layout.Layout) (file string, changed bool, err error) {
	file = filepath.Join(l.Root, "hack", "internal", "testimages", "busybox.lock")
	changed, err = debian.RefreshLock(ctx, file,
		"Debian packages of the test image podenv.dev/busybox.\nWritten by testimages.RefreshLock.",
		"busybox-static")
	return file, changed, err
}
