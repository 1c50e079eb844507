package source

import (
	"archive/zip"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"podenv.dev/hack/internal/series"
)

// streamRelease writes the release as git fast-import reads it.
func streamRelease(w io.Writer, s series.Series, zips []moduleZip, date time.Time) error {
	b := bufio.NewWriterSize(w, 1<<20)
	text := message(kindRelease, "Kubernetes "+s.Release,
		"The modules "+kubernetes+" and, in staging/src, k8s.io/* "+s.Staging()+".\nThe samples and vendor/ are left out, for they cannot be had as modules.")
	fmt.Fprintf(b, "feature done\ncommit %s\ncommitter %s <%s> %d +0000\ndata %d\n%s\n",
		releaseBranch, authorName, authorEmail, date.Unix(), len(text), text)
	edit := newModuleEdit(s, zips)
	for _, z := range zips {
		if err := streamModule(b, z, edit); err != nil {
			return fmt.Errorf("reading %s: %w", z.zip, err)
		}
	}
	fmt.Fprint(b, "done\n")
	return b.Flush()
}

func streamModule(b *bufio.Writer, z moduleZip, edit *moduleEdit) error {
	archive, err := zip.OpenReader(z.zip)
	if err != nil {
		return err
	}
	defer archive.Close()
	folder := ""
	if z.Path != kubernetes {
		folder = "staging/src/" + z.Path + "/"
	}
	for _, f := range archive.File {
		path := folder + strings.TrimPrefix(f.Name, z.String()+"/")
		if strings.HasPrefix(path, "vendor/") {
			// A module has no vendored packages, and the folder's other files would
			// make go look for them there.
			continue
		}
		content, err := readZipped(f)
		if err != nil {
			return err
		}
		if content, err = edit.apply(path, content); err != nil {
			return err
		}
		fmt.Fprintf(b, "M %s inline %s\ndata %d\n", fileMode(content), quotePath(path), len(content))
		b.Write(content) //nolint:errcheck // the error comes with Flush
		if err := b.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

func readZipped(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var buf bytes.Buffer
	buf.Grow(int(f.UncompressedSize64))
	_, err = buf.ReadFrom(r)
	return buf.Bytes(), err
}

// fileMode is a file's mode as git writes it. Modules carry no modes: what a kernel
// would run by its first line gets its bit back.
func fileMode(content []byte) string {
	if bytes.HasPrefix(content, []byte("#!")) {
		return "100755"
	}
	return "100644"
}

// quotePath quotes a path for git fast-import.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
