package source

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"time"
)

// memFile is a file of a module that is only in memory.
type memFile struct{ name, content string }

func (f memFile) Path() string                { return f.name }
func (f memFile) Lstat() (os.FileInfo, error) { return memInfo{f}, nil }
func (f memFile) Open() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader([]byte(f.content))), nil
}

type memInfo struct{ f memFile }

func (i memInfo) Name() string       { return i.f.name }
func (i memInfo) Size() int64        { return int64(len(i.f.content)) }
func (i memInfo) Mode() fs.FileMode  { return 0o644 }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return false }
func (i memInfo) Sys() any           { return nil }

// openerOf is what dirhash opens a module's go.mod with.
func openerOf(content []byte) func(string) (io.ReadCloser, error) {
	return func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}
