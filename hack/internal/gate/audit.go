package gate

import (
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// auditLog is the beginning of the paths of the audit log on the control-plane node.
const auditLog = "/var/log/podenv-audit/audit"

// auditPolicy asks for what was created, with the objects as they were sent.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, verbs: [create]}
- {level: None}
`

// auditPatch configures the API server to log by the policy, which kind mounts into the node.
const auditPatch = `kind: ClusterConfiguration
apiServer:
  extraArgs:
    audit-policy-file: /etc/podenv-audit.yaml
    audit-log-path: ` + auditLog + `.log
    audit-log-maxsize: "100"
  extraVolumes:
  - {name: audit-policy, hostPath: /etc/podenv-audit.yaml, mountPath: /etc/podenv-audit.yaml, readOnly: true, pathType: File}
  - {name: audit-log, hostPath: /var/log/podenv-audit, mountPath: /var/log/podenv-audit, pathType: DirectoryOrCreate}
`

// Kind returns the configuration of a cluster with two workers for a walk, whose API server serves all
// versions of all APIs, and logs who creates what. It writes a file to the folder dir, which the
// cluster needs.
func Kind(dir string) (*v1alpha4.Cluster, error) {
	policy := filepath.Join(dir, "audit.yaml")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := renameio.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	return &v1alpha4.Cluster{
		RuntimeConfig:        map[string]string{"api/all": "true"},
		KubeadmConfigPatches: []string{auditPatch},
		Nodes: []v1alpha4.Node{
			{Role: v1alpha4.ControlPlaneRole, ExtraMounts: []v1alpha4.Mount{{HostPath: policy, ContainerPath: "/etc/podenv-audit.yaml", Readonly: true}}},
			{Role: v1alpha4.WorkerRole}, {Role: v1alpha4.WorkerRole},
		},
	}, nil
}
