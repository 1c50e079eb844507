package nodeimage

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"podenv.dev/hack/internal/image"
)

// cniPlugins are the plugins that nodes keep. They move to cniBin, where kubeadm and other
// CNI plugins expect them.
var cniPlugins = []string{"bridge", "host-local", "loopback", "portmap", "ptp"}

const (
	debianCNI = "usr/lib/cni"
	cniBin    = "opt/cni/bin"
)

// dropped are path.Match patterns of what a node does not need from Debian's packages. A
// pattern that matches a directory drops everything below it.
var dropped = []string{
	// device nodes: the container engine makes its own
	"dev/*",
	// what this machine left in the root file system
	"etc/hostname", "etc/machine-id", "etc/resolv.conf", "etc/apt/apt.conf.d/99mmdebstrap", "root/.ssh",
	"run/*", "tmp/*", "var/tmp/*", "var/log/*",
	"var/cache/apt/*", "var/cache/debconf/*", "var/cache/ldconfig/*", "var/lib/apt/lists/*",
	// documentation
	"usr/share/doc/*", "usr/share/doc-base/*", "usr/share/info/*", "usr/share/lintian/*", "usr/share/locale/*", "usr/share/man/*",
	// Perl beyond perl-base, and other CNI plugins
	"usr/share/perl", "usr/lib/*/perl", "usr/lib/*/libperl.so*", debianCNI,
	// the shell of test images
	"usr/bin/busybox",
	// services that do not belong in a container; kind's own base image drops them too
	"etc/systemd/system/*.wants/*",
	"usr/lib/systemd/system/basic.target.wants/*",
	"usr/lib/systemd/system/local-fs.target.wants/*",
	"usr/lib/systemd/system/multi-user.target.wants/*",
	"usr/lib/systemd/system/sockets.target.wants/*udev*",
	"usr/lib/systemd/system/sockets.target.wants/*initctl*",
	"usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
}

// isDropped reports whether name or one of its parent directories matches dropped.
func isDropped(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		for _, pattern := range dropped {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
	}
	return false
}

// writeBase writes the tar of the base image to w: the root file system in raw without what a
// node does not need, and files, which replace those in raw. Equal input gives equal bytes.
func writeBase(w io.Writer, raw io.Reader, files []image.File) error {
	overlay := map[string]bool{}
	for _, f := range files {
		overlay[f.Path[1:]] = true
	}
	tw, tr := tar.NewWriter(w), tar.NewReader(raw)
	have := map[string]bool{}
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the root file system: %w", err)
		}
		name := clean(hdr.Name)
		if dir, plugin := path.Split(name); dir == debianCNI+"/" && slices.Contains(cniPlugins, plugin) {
			name = cniBin + "/" + plugin
		}
		if name == "" || overlay[name] || isDropped(name) {
			continue
		}
		if hdr.Typeflag == tar.TypeLink && isDropped(clean(hdr.Linkname)) {
			return fmt.Errorf("%s is a hard link to %s, which is left out", name, hdr.Linkname)
		}
		have[name] = true
		if err := copyEntry(tw, tr, hdr, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := image.WriteFiles(tw, files, have); err != nil {
		return err
	}
	return tw.Close()
}

// clean returns the name of a tar entry without a leading ./ or a trailing /.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// copyEntry copies an entry to tw, with the modification time that all files of an image have.
func copyEntry(tw *tar.Writer, tr io.Reader, hdr *tar.Header, name string) error {
	out := &tar.Header{
		Typeflag: hdr.Typeflag, Name: name, Linkname: hdr.Linkname, Size: hdr.Size, Mode: hdr.Mode,
		Uid: hdr.Uid, Gid: hdr.Gid, Devmajor: hdr.Devmajor, Devminor: hdr.Devminor,
		ModTime: image.Epoch, PAXRecords: hdr.PAXRecords, Format: tar.FormatPAX,
	}
	if hdr.Typeflag == tar.TypeDir {
		out.Name += "/"
	}
	// These records would override the fields of the header.
	for _, key := range []string{"mtime", "atime", "ctime", "path", "linkpath", "size", "uid", "gid"} {
		delete(out.PAXRecords, key)
	}
	if err := tw.WriteHeader(out); err != nil {
		return err
	}
	_, err := io.Copy(tw, tr)
	return err
}
