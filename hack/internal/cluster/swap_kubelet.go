package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// crashes is the number of restarts by systemd after which a kubelet that has just
// been started is not waited for any longer.
const crashes = 3

// kubeletConfig is the kubelet's configuration file on kind's nodes.
const kubeletConfig = "/var/lib/kubelet/config.yaml"

// kubeletSwap swaps the kubelet, a systemd service, on all nodes.
type kubeletSwap struct {
	*swap
	turned time.Time
}

func (s *kubeletSwap) running(ctx context.Context, node Node) (string, error) {
	unit, err := s.unit(ctx, node)
	if err != nil {
		return "", err
	}
	if unit.pid == "0" {
		// A kubelet that crashes is a reason to bring another.
		return s.sumNode(ctx, node.Name, s.path())
	}
	return s.sumNode(ctx, node.Name, "/proc/"+unit.pid+"/exe")
}

func (s *kubeletSwap) set(ctx context.Context, node Node) (map[string]bool, error) {
	config, err := s.Exec(ctx, node.Name, "cat", kubeletConfig)
	if err != nil {
		return nil, err
	}
	gates, err := kubeletGates(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kubeletConfig, err)
	}
	return gates, nil
}

func (s *kubeletSwap) files() []string { return []string{s.path(), kubeletConfig} }

// changed are the files that the change replaces.
func (s *kubeletSwap) changed() []string {
	var files []string
	if s.binary != "" || s.original {
		files = append(files, s.path())
	}
	if s.gates != nil || s.original {
		files = append(files, kubeletConfig)
	}
	return files
}

func (s *kubeletSwap) put(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, node Node) error {
		if s.original {
			return s.putOriginal(ctx, node)
		}
		if s.binary != "" {
			if err := s.putFile(ctx, node); err != nil {
				return err
			}
		}
		if s.gates != nil {
			return s.putConfig(ctx, node)
		}
		return nil
	})
}

func (s *kubeletSwap) putOriginal(ctx context.Context, node Node) error {
	for _, file := range s.changed() {
		if err := s.linkOn(ctx, node, file, beside(file, asOld)); err != nil {
			return err
		}
		if err := s.linkOn(ctx, node, beside(file, asOriginal), beside(file, asNew)); err != nil {
			return fmt.Errorf("what was there before node operations is gone: make the cluster anew with `podenv up`: %w", err)
		}
	}
	return nil
}

// putConfig writes the configuration with the gates to a node beside the one in use.
func (s *kubeletSwap) putConfig(ctx context.Context, node Node) error {
	config, err := s.Exec(ctx, node.Name, "cat", kubeletConfig)
	if err != nil {
		return err
	}
	config, err = setKubeletGates(config, s.gates)
	if err != nil {
		return fmt.Errorf("%s: %w", kubeletConfig, err)
	}
	if err := s.write(ctx, node, strings.NewReader(config), beside(kubeletConfig, asNew), "0644"); err != nil {
		return err
	}
	return s.linkOn(ctx, node, kubeletConfig, beside(kubeletConfig, asOld))
}

func (s *kubeletSwap) turn(ctx context.Context) error  { return s.restart(ctx, asNew) }
func (s *kubeletSwap) back(ctx context.Context) error  { return s.restart(ctx, asOld) }
func (s *kubeletSwap) clean(ctx context.Context) error { return s.remove(ctx, s.files()...) }

// restart restarts the kubelets with what their files have beside them for a purpose.
func (s *kubeletSwap) restart(ctx context.Context, purpose string) error {
	if err := s.move(ctx, purpose, s.changed()...); err != nil {
		return err
	}
	// The API has heartbeats in whole seconds.
	s.turned = time.Now().Truncate(time.Second)
	return s.each(ctx, func(ctx context.Context, node Node) error {
		// What an earlier build did must not count against this one.
		if _, err := s.Exec(ctx, node.Name, "systemctl", "reset-failed", s.component); err != nil {
			return err
		}
		_, err := s.Exec(ctx, node.Name, "systemctl", "restart", s.component)
		return err
	})
}

func (s *kubeletSwap) serves(ctx context.Context, want state) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	return s.await(ctx, client, want, s.runs, s.ready)
}

// runs checks that the node's kubelet is the build with the SHA-256 sum.
func (s *kubeletSwap) runs(ctx context.Context, seen *processes, node Node, sum string) error {
	unit, err := s.unit(ctx, node)
	if err != nil {
		return err
	}
	if unit.restarts >= crashes {
		return fatal{fmt.Errorf("the kubelet crashes: systemd has restarted it %d times", unit.restarts)}
	}
	if unit.pid == "0" {
		return fmt.Errorf("the kubelet does not run")
	}
	have, err := seen.sum(ctx, node.Name, unit.pid)
	if err != nil {
		return err
	}
	if have != sum {
		return fmt.Errorf("a kubelet with SHA-256 %s runs, want %s", have, sum)
	}
	return nil
}

// ready checks that the kubelet answers, and that it has reported the node as ready
// since it was restarted: the API keeps what the one before it said.
func (s *kubeletSwap) ready(ctx context.Context, client kubernetes.Interface, node Node) error {
	_, err := client.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("healthz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("the kubelet to be healthy: %w", err)
	}
	n, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := nodeReady(n)
	if ready.LastHeartbeatTime.Time.Before(s.turned) {
		return fmt.Errorf("the kubelet to report: its last heartbeat is of %s", ready.LastHeartbeatTime.Format(time.TimeOnly))
	}
	if ready.Status != corev1.ConditionTrue {
		return fmt.Errorf("the node to be ready: %s", ready.Message)
	}
	return nil
}

func (s *kubeletSwap) tail(ctx context.Context, node Node) string {
	out, err := s.Exec(ctx, node.Name, "journalctl", "--no-pager", "--output=cat", "--unit="+s.component, "--lines="+strconv.Itoa(tailLines))
	if err != nil {
		return err.Error()
	}
	return out
}

// unit is the state of a systemd service.
type unit struct {
	pid      string // "0" where none runs
	restarts int    // by systemd, since they were last reset
}

func (s *kubeletSwap) unit(ctx context.Context, node Node) (unit, error) {
	out, err := s.Exec(ctx, node.Name, "systemctl", "show", "--property=MainPID,NRestarts", s.component)
	if err != nil {
		return unit{}, err
	}
	return parseUnit(out)
}

// parseUnit reads what systemctl show prints.
func parseUnit(out string) (unit, error) {
	var u unit
	var err error
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "MainPID":
			u.pid = value
		case "NRestarts":
			if u.restarts, err = strconv.Atoi(value); err != nil {
				return unit{}, fmt.Errorf("systemctl show printed %q", line)
			}
		}
	}
	if u.pid == "" {
		return unit{}, fmt.Errorf("systemctl show printed %q: want MainPID and NRestarts", out)
	}
	return u, nil
}
