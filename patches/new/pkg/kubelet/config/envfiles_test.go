package config

import (
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

// A static pod may use env files. The rule of who may mount their volume binds where the
// kubelet reads them: what the API server would refuse, it refuses. With the gate off
// every static pod runs that runs without that rule.
func TestDecodeStaticPodWithEnvFiles(t *testing.T) {
	const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: static, namespace: default}
spec:
  initContainers:
  - name: setup
    image: setup
    volumeMounts: [{name: config, mountPath: /config}]
  containers:
  - name: app
    image: app
    env:
    - name: FROM_FILE
      valueFrom:
        fileKeyRef: {volumeName: config, path: config.env, key: KEY}
    volumeMounts: [{name: MOUNTED, mountPath: /mnt}]
  volumes:
  - {name: config, emptyDir: {}}
  - {name: data, emptyDir: {}}
`
	testCases := []struct {
		name    string
		mounted string // the volume that the container mounts
		wantErr string
	}{
		{name: "an init container mounts, the container consumes", mounted: "data"},
		{name: "the container mounts what it consumes", mounted: "config", wantErr: "spec.containers[0].volumeMounts[0].name: Forbidden"},
	}
	for _, enabled := range []bool{true, false} {
		for _, tc := range testCases {
			name := tc.name + ", gate off"
			if enabled {
				name = tc.name + ", gate on"
			}
			t.Run(name, func(t *testing.T) {
				featurestest.SetGate(t, features.EnvFiles, enabled)

				data := strings.ReplaceAll(manifest, "MOUNTED", tc.mounted)
				parsed, pod, err := tryDecodeSinglePod([]byte(data), noDefault)

				if !parsed {
					t.Fatalf("want a pod, got: %v", err)
				}
				if tc.wantErr != "" && enabled {
					if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
						t.Errorf("want an error with %q, got: %v", tc.wantErr, err)
					}
					return
				}
				if err != nil {
					t.Fatalf("unexpected error: %v", err)
				}
				// The gate decides when the container starts, not here.
				if ref := pod.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef; ref == nil || ref.VolumeName != "config" {
					t.Errorf("want the fileKeyRef of the manifest, got: %v", ref)
				}
			})
		}
	}
}
