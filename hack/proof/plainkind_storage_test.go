package proof

import (
	"context"
	"fmt"
	"strings"

	"podenv.dev/hack/internal/poll"
)

// The writer runs on the control plane. The reader may run on both nodes, and would rather be on the
// worker.
const (
	kindVolume = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
---
`
	kindVolumeUser = `apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  tolerations: [{operator: Exists}]
  affinity:
    nodeAffinity: AFFINITY
  containers:
  - name: shell
    image: podenv.dev/busybox:1
    imagePullPolicy: Never
    command: [sh, -ec, COMMAND]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
`
)

// storage writes to a volume of the default StorageClass, and reads it in another pod. Then it deletes
// the volume, and with it its folder.
func (k *kindProof) storage() (string, error) {
	on := func(node string) string {
		return `{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: ["` + k.node(node) + `"]}]}`
	}
	use := func(name, affinity, command string) (string, error) {
		pod := strings.NewReplacer("NAME", name, "AFFINITY", affinity, "COMMAND", command).Replace(kindVolumeUser)
		if err := k.kubectl("apply", "--filename=-").Stdin(strings.NewReader(kindVolume + pod)).Run(); err != nil {
			return "", err
		}
		if err := k.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/"+name, "--timeout="+requestTimeout.String()).Run(); err != nil {
			return "", err
		}
		return k.kubectl("get", "pod", name, "--output=jsonpath={.spec.nodeName}").Output()
	}
	wrote, err := use("writer", "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: ["+on("control-plane")+"]}}", "echo kept > /data/file")
	if err != nil {
		return "", err
	}
	read, err := use("reader", "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: "+on("worker")+"}]}", "grep -x kept /data/file")
	if err != nil {
		return "", err
	}
	if read != wrote {
		return "", fmt.Errorf("the volume is on %s, and the pod that reads it on %s", wrote, read)
	}
	if err := k.kubectl("delete", "pod/writer", "pod/reader", "pvc/data").Run(); err != nil {
		return "", err
	}
	err = poll.Until(k.ctx, requestTimeout, func(context.Context) error {
		left, err := k.docker("exec", wrote, "ls", "/var/local-path-provisioner").Output()
		if err == nil && left != "" {
			err = fmt.Errorf("%s still has %s", wrote, left)
		}
		return err
	})
	return "written and read on " + wrote, err
}
