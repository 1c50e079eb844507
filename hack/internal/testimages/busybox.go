package testimages

import (
	"bytes"
	_ "embed"
	"errors"
	"io/fs"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/image"
)

//go:embed printenv.awk
var printenv []byte

// busybox returns the image with a shell, from the files of Debian's busybox-static.
func busybox(packaged []image.File) (image.Spec, error) {
	var program, copyright []byte
	for _, f := range packaged {
		switch f.Path {
		case "/usr/bin/busybox":
			program = f.Data
		case "/usr/share/doc/busybox-static/copyright":
			copyright = f.Data
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
		image.File{Path: "/usr/share/doc/busybox-static/copyright", Mode: 0o644, Data: copyright},
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
// program's table of names: they are sorted, each ends with a NUL byte, and so does the table.
// `busybox --list` prints the same, but a file that this process has just written cannot
// be executed ("text file busy") while another goroutine starts a command.
func appletsOf(program []byte) ([]string, error) {
	const start = "\x00[\x00[[\x00"
	if at := bytes.Index(program, []byte(start)); at >= 0 {
		table, _, ended := bytes.Cut(program[at+1:], []byte("\x00\x00"))
		applets := strings.Split(string(table), "\x00")
		if ended && slices.Contains(applets, "sh") {
			return applets, nil
		}
	}
	return nil, errors.New("busybox has no table of its applets that starts with [ and [[ and has sh: go back to the version of busybox-static that was pinned")
}
