package expansion

import (
	"fmt"
	"strings"
)

const (
	// UnexpandedReferencesReason is the reason of the events of this package.
	UnexpandedReferencesReason = "UnexpandedVariableReferences"

	// eventTypeWarning is EventTypeWarning of k8s.io/api/core/v1.
	eventTypeWarning = "Warning"

	// maxNames is how many names a message spells out, maxPlaces how many places
	// of each.
	maxNames, maxPlaces = 10, 3
	// maxListed is how many bytes the list may have; further names are only
	// counted. It keeps a message within the 1024 bytes that events.k8s.io/v1 has
	// for a note.
	maxListed = 750
	// maxShown is how much is shown of a reference or of a place, in bytes: a
	// reference can be as long as a shell script.
	maxShown = 64
)

// message names the container, the distinct names and the places that refer to
// them. It has nothing in it that is not in the pod's spec, and no value.
func (u *UnexpandedReferences) message() string {
	var list strings.Builder
	listed := 0
	for _, found := range u.found {
		next := found.String()
		if listed == maxNames || list.Len()+len(next) > maxListed {
			break
		}
		if listed > 0 {
			list.WriteString(", ")
		}
		list.WriteString(next)
		listed++
	}
	if more := len(u.found) - listed; more > 0 {
		fmt.Fprintf(&list, " and %d more", more)
	}
	return fmt.Sprintf("Container %s has references that could not be expanded: %s. "+
		"Declare a variable before it is referred to, or write $$(NAME) to mean $(NAME) itself", u.container, &list)
}

// String is like "$(NAME) (env URL, args)".
func (n *unexpandedName) String() string {
	places := make([]string, 0, maxPlaces+1)
	for i, where := range n.places {
		if i == maxPlaces {
			places = append(places, fmt.Sprintf("%d more", len(n.places)-i))
			break
		}
		places = append(places, shortened(where))
	}
	return fmt.Sprintf("%s (%s)", shortened(reference(n.name)), strings.Join(places, ", "))
}

// shortened returns text cut after maxShown bytes. It is printable ASCII, as names of
// variables are.
func shortened(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "..."
	}
	return text
}
