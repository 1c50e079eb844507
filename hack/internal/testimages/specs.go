package testimages

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// specFormat is part of the key of the specs' images. Increment it when the packing changes.
const specFormat = "3"

const specBusybox = "registry.k8s.io/e2e-test-images/busybox"

// specConfigs are the configurations, as in the Dockerfiles of a release's test/images, of images that
// have the files of specFiles and Debian's packages.
var specConfigs = map[string]v1.Config{
	"registry.k8s.io/e2e-test-images/agnhost": {Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}},
	specBusybox: {Cmd: []string{"sh"}, Env: []string{"PATH=/shell:/busybox:/usr/sbin:/usr/bin"}},
	"registry.k8s.io/e2e-test-images/glibc-dns-testing":      {Cmd: []string{"bash"}},
	"registry.k8s.io/e2e-test-images/httpd":                  {Cmd: []string{"apache2", "-f", "/usr/local/apache2/conf/httpd.conf", "-DFOREGROUND"}},
	"registry.k8s.io/e2e-test-images/jessie-dnsutils":        {Cmd: []string{"bash"}},
	"registry.k8s.io/e2e-test-images/kitten":                 {Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}},
	"registry.k8s.io/e2e-test-images/nautilus":               {Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}},
	"registry.k8s.io/e2e-test-images/nginx":                  {Cmd: []string{"nginx", "-g", "daemon off;"}},
	"registry.k8s.io/e2e-test-images/nonewprivs":             {Cmd: []string{"nnp"}},
	"registry.k8s.io/e2e-test-images/nonroot":                {Cmd: []string{"bash"}, User: "1234"},
	"registry.k8s.io/e2e-test-images/perl":                   {Cmd: []string{"perl", "-de0"}},
	"registry.k8s.io/e2e-test-images/redis":                  {Cmd: []string{"redis-server", "/etc/redis.conf"}},
	"registry.k8s.io/e2e-test-images/regression-issue-74839": {Entrypoint: []string{"/regression-issue-74839"}},
	"registry.k8s.io/e2e-test-images/resource-consumer":      {Entrypoint: []string{"/consumer"}},
	"registry.k8s.io/e2e-test-images/sample-apiserver":       {Entrypoint: []string{"/sample-apiserver"}},
	"registry.k8s.io/etcd":                                   {Cmd: []string{"/usr/local/bin/etcd"}},
}

// specFiles returns what all images have beside Debian's packages. programs is the folder with what
// build.BuildSpecs compiled.
func specFiles(programs, etcd string) []image.File {
	files := []image.File{
		// Debian's busybox has no shell that leaves its children variables such as data-1.
		{Path: "/shell/sh", Link: "/usr/bin/bash"}, {Path: "/usr/bin/sysctl", Link: "busybox"},
		{Path: "/agnhost-2", Link: "agnhost"}, {Path: "/uploads", Mode: fs.ModeDir | 0o755}, {Path: "/data", Mode: fs.ModeDir | 0o777},
		{Path: "/usr/local/bin/nnp", Mode: fs.ModeSetuid | fs.ModeSetgid | 0o755, Source: filepath.Join(programs, "nonewprivs")},
	}
	for path, text := range map[string]string{
		"/etc/passwd":                          "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n",
		"/etc/group":                           "root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n",
		"/etc/nginx/nginx.conf":                "user nobody nogroup;\nerror_log stderr;\npid /tmp/nginx.pid;\nevents {}\nhttp { server { listen 80; root /usr/share/nginx/html; } }\n",
		"/usr/local/apache2/htdocs/index.html": "<html><body><h1>It works!</h1></body></html>\n",
		"/usr/local/apache2/conf/httpd.conf": `ServerName localhost
Listen 80
PidFile /tmp/httpd.pid
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
User nobody
Group nogroup
DocumentRoot /usr/local/apache2/htdocs
ErrorLog /proc/self/fd/2
CustomLog /proc/self/fd/1 "%h %t \"%r\" %>s %b"
`,
	} {
		files = append(files, image.File{Path: path, Mode: 0o644, Data: []byte(text)})
	}
	for path, source := range map[string]string{
		"/agnhost": programs + "/agnhost", "/consumer": programs + "/resource-consumer", "/consume-cpu": programs + "/consume-cpu",
		"/regression-issue-74839": programs + "/regression-issue-74839", "/sample-apiserver": programs + "/sample-apiserver", "/usr/local/bin/etcd": etcd,
	} {
		files = append(files, image.File{Path: path, Mode: 0o755, Source: source})
	}
	return files
}

// ForSpecs returns a docker-archive with those of the images refs, which a release's specs run, that can be
// made from tree, its source, programs, the folder with what build.BuildSpecs compiled from inputs with the
// digest key, and etcd, that of the release. They have the same files, which nodes get once.
func ForSpecs(ctx context.Context, l layout.Layout, tree, programs, key, etcd string, refs []string, step *progress.Step) (string, error) {
	rootfs, err := debian.Specs.RootFS(ctx, l, step)
	if err != nil {
		return "", err
	}
	key = digest.Of(specFormat, rootfs, key, etcd, strings.Join(refs, ","))
	archive, packed, err := image.Cached(l.Cache("testimages"), filepath.Base(tree)+"-specs", key, func(archive string) error {
		step.Now("packing the images")
		return packSpecs(archive, rootfs, filepath.Join(tree, "test/images"), specFiles(programs, etcd), refs)
	})
	if err == nil && !packed {
		step.Cached("as packed before")
	}
	return archive, err
}

// packSpecs writes those of the images refs that can be made to the docker-archive out.
func packSpecs(out, rootfs, sources string, files []image.File, refs []string) error {
	base, err := image.NewLayer(func(w io.Writer) error {
		f, err := os.Open(rootfs)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
	if err != nil {
		return err
	}
	layer, err := image.NewLayer(image.WriteTar(files))
	if err != nil {
		return err
	}
	images := map[name.Reference]v1.Image{}
	for _, ref := range refs {
		repository, _, _ := strings.Cut(ref, ":")
		config, ok := specConfigs[repository]
		if !ok {
			continue
		}
		var own []image.File // what a Dockerfile copies, of a release that has it
		for copied, to := range map[string]string{"html/*": "/", "porter/localhost.*": "/", "redis.conf": "/etc/"} {
			found, err := filepath.Glob(filepath.Join(sources, path.Base(repository), copied))
			if err != nil {
				return err
			}
			for _, file := range found {
				own = append(own, image.File{Path: to + filepath.Base(file), Mode: 0o644, Source: file})
			}
		}
		if repository == specBusybox {
			own = append(own, image.File{Path: "/usr/bin/sh", Link: "busybox"}) // a spec looks for its message
		}
		more, err := image.NewLayer(image.WriteTar(own))
		if err != nil {
			return err
		}
		tag, err := name.NewTag(ref)
		if err != nil {
			return err
		}
		if config.Env == nil {
			config.Env = []string{image.SearchPath + ":/busybox"} // which has what Alpine has and Debian lacks
		}
		if images[tag], err = image.New(runtime.GOARCH, config, base, layer, more); err != nil {
			return err
		}
	}
	return image.WriteFile(out, func(w io.Writer) error { return tarball.MultiRefWrite(images, w) })
}
