package testimages

import (
	"archive/tar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/image/imagetest"
)

// archiveOfSpecs packs the images of a release's specs from small files, with more in its test/images.
func archiveOfSpecs(t *testing.T, more []string, refs ...string) string {
	t.Helper()
	dir := t.TempDir()
	sources, programs, rootfs := filepath.Join(dir, "test/images"), filepath.Join(dir, "programs"), filepath.Join(dir, "rootfs.tar")
	for _, file := range append(more, "agnhost/porter/localhost.crt", "agnhost/porter/localhost.key",
		"kitten/html/kitten.jpg", "kitten/html/data.json", "nautilus/html/nautilus.jpg", "nautilus/html/data.json") {
		write(t, filepath.Join(sources, file), file, 0o644)
	}
	for _, program := range []string{"agnhost", "nonewprivs", "resource-consumer", "consume-cpu", "regression-issue-74839", "sample-apiserver", "etcd"} {
		write(t, filepath.Join(programs, program), program, 0o755)
	}
	f, err := os.Create(rootfs)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tw := tar.NewWriter(f)
	if err := image.WriteFiles(tw, []image.File{{Path: "/usr/bin/dig", Mode: 0o755, Data: []byte("dig")}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "specs.tar")
	if err := packSpecs(archive, rootfs, sources, specFiles(programs, filepath.Join(programs, "etcd")), refs); err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestImagesOfSpecsHaveWhatTheirDockerfilesAdd(t *testing.T) {
	const folder = "registry.k8s.io/e2e-test-images/"
	wants := []struct{ ref, command, user, files string }{
		{folder + "agnhost:2.53", "/agnhost pause", "", "agnhost agnhost-2 localhost.crt localhost.key uploads/ usr/bin/dig etc/passwd"},
		{folder + "agnhost:2.55", "/agnhost pause", "", "agnhost agnhost-2"}, // a spec names it by itself
		{folder + "busybox:1.36.1-1", "sh", "", "shell/sh usr/bin/sh usr/bin/sysctl usr/bin/dig"},
		{folder + "kitten:1.7", "/agnhost test-webserver", "", "agnhost kitten.jpg data.json"},
		{folder + "nautilus:1.7", "/agnhost test-webserver", "", "agnhost nautilus.jpg data.json"},
		{folder + "nonroot:1.4", "bash", "1234", "usr/bin/dig"},
		{folder + "nonewprivs:1.3", "nnp", "", "usr/local/bin/nnp"},
		{folder + "glibc-dns-testing:2.1.1", "bash", "", "usr/bin/dig"},
		{folder + "httpd:2.4.38-4", "apache2 -f /usr/local/apache2/conf/httpd.conf -DFOREGROUND", "", "usr/local/apache2/htdocs/index.html"},
		{folder + "redis:5.0.5-3", "redis-server /etc/redis.conf", "", "etc/redis.conf data/"},
		{folder + "resource-consumer:1.13", "/consumer", "", "consumer consume-cpu"},
		{folder + "sample-apiserver:1.29.2", "/sample-apiserver", "", "sample-apiserver"},
		{"registry.k8s.io/etcd:3.5.21-0", "/usr/local/bin/etcd", "", "usr/local/bin/etcd"},
	}
	refs := []string{folder + "volume/nfs:1.4", "gcr.io/k8s-authenticated-test/agnhost:2.6"} // which cannot be made
	for _, want := range wants {
		refs = append(refs, want.ref)
	}
	archive := archiveOfSpecs(t, []string{"redis/redis.conf"}, refs...)
	if tags, err := image.Tags(archive); err != nil || len(tags) != len(wants) {
		t.Errorf("the archive has %v (%v)", tags, err)
	}
	for _, want := range wants {
		files, config := imageIn(t, archive, want.ref)
		if got := strings.Join(slices.Concat(config.Entrypoint, config.Cmd), " "); got != want.command || config.User != want.user {
			t.Errorf("%s runs %q as %q, want %q as %q", want.ref, got, config.User, want.command, want.user)
		}
		for _, name := range strings.Fields(want.files) {
			if _, ok := files[name]; !ok {
				t.Errorf("%s lacks %s", want.ref, name)
			}
		}
	}
	shells, config := imageIn(t, archive, folder+"busybox:1.36.1-1")
	if shells["shell/sh"].Linkname != "/usr/bin/bash" || shells["usr/bin/sh"].Linkname != "busybox" || !strings.HasPrefix(config.Env[0], "PATH=/shell:") {
		t.Errorf("sh is %s in PATH %s, and /bin/sh is %s", shells["shell/sh"].Linkname, config.Env, shells["usr/bin/sh"].Linkname)
	}
	kitten, _ := imageIn(t, archive, folder+"kitten:1.7")
	if got := string(kitten["data.json"].Data); got != "kitten/html/data.json" {
		t.Errorf("the kitten serves %s", got)
	}
	nonewprivs, _ := imageIn(t, archive, folder+"nonewprivs:1.3")
	if mode := nonewprivs["usr/local/bin/nnp"].Mode; mode != 0o6755 {
		t.Errorf("nnp has mode %o, want that of a program that runs as root", mode)
	}
}

// From v1.34 on test/images has no redis, and a manifest still names it.
func TestImagesOfAReleaseWithoutRedis(t *testing.T) {
	const agnhost, redis = "registry.k8s.io/e2e-test-images/agnhost:2.56", "registry.k8s.io/e2e-test-images/redis:5.0.5-"
	files, _ := imageIn(t, archiveOfSpecs(t, nil, agnhost, redis), agnhost)
	if _, ok := files["agnhost"]; !ok {
		t.Error("agnhost was not packed")
	}
}

// imageIn returns the files of an image in a docker-archive, and its configuration.
func imageIn(t *testing.T, archive, ref string) (map[string]imagetest.File, v1.Config) {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]imagetest.File{}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for name, file := range imagetest.Tar(t, r) {
			all[name] = file
		}
		r.Close()
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return all, config.Config
}
