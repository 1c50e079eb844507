package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	"k8s.io/kubernetes/pkg/kubelet/expansion"
	testingclock "k8s.io/utils/clock/testing"
)

// crashLoop returns how many warnings of each reason reach the API server in an hour
// from a pod of two containers: one ends with an error five seconds after each of its
// starts, the readiness probe of the other one fails.
func crashLoop(t *testing.T, refersToNothing bool) map[string]int {
	t.Helper()
	const crashing, unready = "spec.containers{crashing}", "spec.containers{unready}"
	now := time.Unix(0, 0)
	clock := testingclock.NewFakePassiveClock(now)
	options := CorrelatorOptions()
	options.Clock = clock
	correlator := record.NewEventCorrelatorWithOptions(options)
	reached := map[string]int{}
	raise := func(container, reason string) {
		result, err := correlator.EventCorrelate(&v1.Event{
			InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "pod", UID: "uid", FieldPath: container},
			Source:         v1.EventSource{Component: "kubelet", Host: "node"},
			Type:           v1.EventTypeWarning, Reason: reason, Message: reason,
		})
		require.NoError(t, err)
		if !result.Skip {
			reached[reason]++
		}
	}
	start, backOff := 0, 10
	for second := 0; second < 3600; second++ {
		clock.SetTime(now.Add(time.Duration(second) * time.Second))
		switch waited := second - start - 5; {
		case second == start && refersToNothing:
			raise(crashing, expansion.UnexpandedReferencesReason)
		case waited == backOff:
			start, backOff = second+1, min(2*backOff, 300)
		case waited >= 0 && waited%12 == 0: // each time that the kubelet looks at the pod
			raise(crashing, BackOffStartContainer)
		}
		if second%10 == 9 {
			raise(unready, ContainerUnhealthy)
		}
	}
	return reached
}

func TestEventsAboutReferencesTakeNoneOfTheOthersBudget(t *testing.T) {
	featurestest.SetGate(t, features.VariableExpansionEvents, false)
	off := crashLoop(t, false)
	featurestest.SetGate(t, features.VariableExpansionEvents, true)
	on := crashLoop(t, true)
	t.Logf("in an hour: gate off %v, gate on %v", off, on)

	assert.GreaterOrEqual(t, on[expansion.UnexpandedReferencesReason], 10)
	delete(on, expansion.UnexpandedReferencesReason)
	assert.Equal(t, off, on)
}

// Each container has a budget, so that none hides what another one lacks.
func TestEachContainerHasABudgetForEventsAboutReferences(t *testing.T) {
	featurestest.SetGate(t, features.VariableExpansionEvents, true)
	event := func(container int) *v1.Event {
		return &v1.Event{Reason: expansion.UnexpandedReferencesReason, InvolvedObject: v1.ObjectReference{FieldPath: fmt.Sprintf("spec.containers{c%d}", container)}}
	}
	options := CorrelatorOptions()
	options.Clock = testingclock.NewFakePassiveClock(time.Unix(0, 0))
	correlator := record.NewEventCorrelatorWithOptions(options)
	skipped := func(container int) bool {
		result, err := correlator.EventCorrelate(event(container))
		require.NoError(t, err)
		return result.Skip
	}
	for range make([]struct{}, 25) {
		assert.False(t, skipped(0))
	}
	assert.True(t, skipped(0), "the budget of a container ends")
	assert.False(t, skipped(1))
}

// All other events have the budgets of client-go, which differ between releases.
func TestGateOnOtherEventsHaveTheBudgetsOfClientGo(t *testing.T) {
	featurestest.SetGate(t, features.VariableExpansionEvents, true)
	reached := func(options record.CorrelatorOptions) (events []string) {
		options.Clock = testingclock.NewFakePassiveClock(time.Unix(0, 0))
		correlator := record.NewEventCorrelatorWithOptions(options)
		for i := 0; i < 40; i++ {
			for _, eventType := range []string{v1.EventTypeNormal, v1.EventTypeWarning} {
				event := &v1.Event{InvolvedObject: v1.ObjectReference{Name: "pod"}, Type: eventType, Reason: fmt.Sprint(i)}
				result, err := correlator.EventCorrelate(event)
				require.NoError(t, err)
				if !result.Skip {
					events = append(events, eventType+" "+event.Reason)
				}
			}
		}
		return events
	}
	assert.Equal(t, reached(record.CorrelatorOptions{}), reached(CorrelatorOptions()))
}

func TestGateOffTheBudgetIsThatOfClientGo(t *testing.T) {
	featurestest.SetGate(t, features.VariableExpansionEvents, false)
	assert.Equal(t, record.CorrelatorOptions{}, CorrelatorOptions())
}
