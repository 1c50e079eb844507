//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/utils/ptr"
)

// BenchmarkMakeEnvironmentVariables is to show that variables from a file cost
// what literal ones cost and one read of the file: fileKeyRefs is to be
// compared with the sum of literals and read.
func BenchmarkMakeEnvironmentVariables(b *testing.B) {
	const variables = 100
	var (
		file                  strings.Builder
		keys                  []string
		literals, fileKeyRefs []v1.EnvVar
	)
	for i := 0; i < variables; i++ {
		name := fmt.Sprintf("KEY_%d", i)
		value := strings.Repeat("v", 50)
		fmt.Fprintf(&file, "%s=%s\n", name, value)
		keys = append(keys, name)
		literals = append(literals, v1.EnvVar{Name: name, Value: value})
		fileKeyRefs = append(fileKeyRefs, fileKeyRef(name, "config", "config.env", name))
	}
	root := volumeOf(b, map[string]string{"config.env": file.String()})
	pod := podWithEmptyDirs("config")
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: ptr.To(int64(os.Getuid()))}
	kl := kubeletWithEnvFiles(b)
	volumes := mountedAt(root)

	makeEnvironmentVariables := func(env []v1.EnvVar) func() error {
		container := &v1.Container{Env: env}
		return func() error {
			got, err := kl.environment(pod, container, volumes)
			if err == nil && len(got) != variables {
				err = fmt.Errorf("want %d variables, got %d", variables, len(got))
			}
			return err
		}
	}
	for _, bm := range []struct {
		name string
		run  func() error
	}{
		{name: "literals", run: makeEnvironmentVariables(literals)},
		{name: "fileKeyRefs", run: makeEnvironmentVariables(fileKeyRefs)},
		{name: "read", run: func() error {
			_, err := envfile.Read(context.Background(), root, "config.env", keys, envfile.Options{})
			return err
		}},
		{name: "os.ReadFile", run: func() error {
			_, err := os.ReadFile(filepath.Join(root, "config.env"))
			return err
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			// The first read waits until the file is old enough to be trusted.
			if err := bm.run(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				if err := bm.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
