package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/gate"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/series"
)

// walkName is the name of the cluster of gateWalk.
var walkName = layout.MustFind().UniqueName("podenv-walk")

// gateWalk walks a gate of this branch, for which the right answers are known: with the gate off new
// objects are refused, and no stored one loses a field, whoever writes to it with this branch's API server.
func gateWalk(c *check) error {
	const cleanUp = 3 * time.Minute // the walk deletes its cluster also after Ctrl-C
	out, err := c.command(*podenv, "gate", "walk", "EnvFiles", "--series", steps.Series.Name, "--name", walkName, "--output", "json").Interruptible(cleanUp).Output()
	if err != nil {
		return err
	}
	var w gate.Walk
	if err := json.Unmarshal([]byte(out), &w); err != nil {
		return err
	}
	if !w.Complete || w.Servers == nil || w.Stored == nil || w.Older == nil {
		return fmt.Errorf("not all parts were walked: %s", out)
	}
	c.part("new objects are refused with the gate off", func() error {
		if len(w.Refused) == 0 {
			return errors.New("none was")
		}
		return nil
	})
	// An API server of a release without the field loses it with each write, also of a status.
	field, fieldUnknown := "Pod: spec.containers[].env[].valueFrom.fileKeyRef", semver.Compare(w.OlderRelease, "v1.34.0") < 0 // upstream has it since
	lostBefore := append(w.Older.Lost, slices.DeleteFunc(w.Older.Written, func(path string) bool { return fieldUnknown && path == field })...)
	for name, lost := range map[string][]string{
		"two API servers": w.Servers.Lost, "off and on": append(w.Stored.Lost, w.Stored.Written...), "the minor before": lostBefore,
	} {
		c.part("no field is lost: "+name, func() error {
			if len(lost) > 0 {
				return fmt.Errorf("lost: %q", lost)
			}
			return nil
		})
	}
	if fieldUnknown {
		c.part("a field that the minor before does not know is found, and that it refuses an update", func() error {
			if !slices.Contains(w.Older.Hidden, field) || len(w.Older.Refused) == 0 {
				return fmt.Errorf("found hidden: %q, refused: %q", w.Older.Hidden, w.Older.Refused)
			}
			return nil
		})
	}
	for when, rows := range map[string][]conformance.Row{"at first": w.On, "again after the gate was off": w.Again} {
		c.part("specs pass "+when, func() error {
			if len(rows) == 0 || slices.ContainsFunc(rows, func(r conformance.Row) bool { return r.State != conformance.Passed }) {
				return fmt.Errorf("found %+v", rows)
			}
			return nil
		})
	}
	c.part("older kubelets fail specs if they do not know the field", func() error {
		if want := len(steps.Series.Older(repo, series.SupportedSkew)); len(w.Skew) != want {
			return fmt.Errorf("%d older kubelets, want %d", len(w.Skew), want)
		}
		for release, rows := range w.Skew {
			fails := slices.ContainsFunc(rows, func(r conformance.Row) bool { return r.State == conformance.Failed })
			if len(rows) == 0 || semver.Compare(release, "v1.34.0") < 0 && !fails {
				return fmt.Errorf("kubelet %s: %+v", release, rows)
			}
		}
		return nil
	})
	c.part("the metric of the feature is there with the gate on only", func() error {
		if !slices.Contains(w.Metrics, "kubelet: kubelet_env_file_read_duration_seconds") {
			return fmt.Errorf("found %q", w.Metrics)
		}
		return nil
	})
	for _, component := range node.Components {
		c.part("costs of "+component, func() error {
			at := slices.IndexFunc(w.Costs, func(c gate.Cost) bool { return c.What == "resident memory of "+component+", in MiB" })
			if at < 0 || len(w.Costs[at].Off) == 0 || len(w.Costs[at].On) != len(w.Costs[at].Off) || slices.Min(w.Costs[at].On) <= 0 {
				return fmt.Errorf("found %+v", w.Costs)
			}
			return nil
		})
	}
	c.part("what the API server with the gate off refuses to create is listed", func() error {
		if !slices.ContainsFunc(w.Servers.Refused, func(reason string) bool { return strings.HasPrefix(reason, "Pod, created: ") }) {
			return fmt.Errorf("found %q", w.Servers.Refused)
		}
		return nil
	})
	c.part("objects were stored, and written to by two API servers", func() error {
		if w.Servers.Objects == 0 || w.Stored.Objects == 0 || w.Stored.Updated == 0 || w.Older.Unwritten == 0 || !w.Older.Again {
			return fmt.Errorf("too few: %+v, %+v, %+v", w.Servers, w.Stored, w.Older)
		}
		return nil
	})
	return nil
}
