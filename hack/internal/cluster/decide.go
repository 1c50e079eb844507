package cluster

import "fmt"

// action is what Create does about what it finds.
type action string

const (
	create   action = "create"
	reuse    action = "reuse"
	recreate action = "recreate"
	refuse   action = "refuse"
)

// decide says what to do about the containers found where a cluster as want
// describes shall be, and why. have is the record on the control-plane node, or nil.
func decide(found []container, have, want *record) (action, string) {
	if len(found) == 0 {
		return create, ""
	}
	if why := foreign(found); why != "" {
		return refuse, why
	}
	if have == nil {
		return recreate, "a run that was interrupted left it half-made"
	}
	if why := have.differs(want); why != "" {
		return recreate, why
	}
	if n := 1 + want.Workers; len(found) != n {
		return recreate, fmt.Sprintf("it has %d of its %d nodes left", len(found), n)
	}
	for _, c := range found {
		if !c.Running {
			return recreate, fmt.Sprintf("node %s is stopped", c.Name)
		}
	}
	return reuse, ""
}

// foreign says which of the containers podenv did not make, if there is one.
func foreign(found []container) string {
	for _, c := range found {
		switch {
		case c.Cluster == "":
			return fmt.Sprintf("container %s, which kind did not make, has the name of a node", c.Name)
		case !c.Marked:
			return fmt.Sprintf("kind cluster %s exists and was not made by podenv", c.Cluster)
		}
	}
	return ""
}
