package config

import (
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

// A static pod may use env files, by the rules that the API server has for them. With the gate
// off a kubelet does what one does that does not know the field: it runs a pod whose
// variables have another source, whatever it mounts, and refuses one that has none.
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
      valueFrom: {SOURCES}
    volumeMounts: [{name: MOUNTED, mountPath: /mnt}]
  volumes:
  - {name: config, emptyDir: {}}
  - {name: data, emptyDir: {}}
`
	const (
		file     = "fileKeyRef: {volumeName: config, path: config.env, key: KEY}"
		longPath = "fileKeyRef: {volumeName: none, path: ../config.env, key: KEY}"
		field    = "fieldRef: {apiVersion: v1, fieldPath: metadata.name}"
	)
	for name, tc := range map[string]struct {
		sources, mounted string
		gateOn, gateOff  string // parts of the errors
	}{
		"an init container mounts, the container consumes": {file, "data", "", "must specify one of"},
		"the container mounts what it consumes":            {file, "config", "volumeMounts[0].name: Forbidden", "must specify one of"},
		"another source beside it":                         {file + ", " + field, "data", "may not have more than one field specified", ""},
		"the same, and the container mounts the volume":    {file + ", " + field, "config", "may not have more than one field specified", ""},
		"the same, with a path and a volume of no file":    {longPath + ", " + field, "config", "may not have more than one field specified", ""},
		"another source alone":                             {field, "config", "", ""},
	} {
		for gate, want := range map[bool]string{true: tc.gateOn, false: tc.gateOff} {
			t.Run(name, func(t *testing.T) {
				featurestest.SetGate(t, features.EnvFiles, gate)
				pod := strings.NewReplacer("SOURCES", tc.sources, "MOUNTED", tc.mounted).Replace(manifest)
				list := "apiVersion: v1\nkind: PodList\nitems:\n-" + strings.ReplaceAll(pod, "\n", "\n  ")[2:]

				parsed, one, err := tryDecodeSinglePod([]byte(pod), noDefault)
				isList, all, errAll := tryDecodePodList([]byte(list), noDefault)

				if !parsed || !isList {
					t.Fatalf("gate %t: want pods, got: %v, %v", gate, err, errAll)
				}
				for _, err := range []error{err, errAll} {
					if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("gate %t: want error %q, got: %v", gate, want, err)
					}
				}
				if want != "" {
					return
				}
				kept := gate && strings.Contains(tc.sources, "fileKeyRef")
				for _, source := range []bool{
					one.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef != nil,
					all.Items[0].Spec.Containers[0].Env[0].ValueFrom.FileKeyRef != nil,
				} {
					if source != kept {
						t.Errorf("gate %t: the fileKeyRef is there: %t", gate, source)
					}
				}
			})
		}
	}
}
