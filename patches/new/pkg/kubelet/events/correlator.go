package events

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/expansion"
)

// CorrelatorOptions returns how the kubelet limits its events: as client-go does,
// but the events about references that cannot be expanded have a budget of their
// own for each container. A start of a container raises one, and it is to take none
// of the warnings that its pod is given, such as BackOff and Unhealthy.
func CorrelatorOptions() record.CorrelatorOptions {
	if !utilfeature.DefaultFeatureGate.Enabled(features.VariableExpansionEvents) {
		return record.CorrelatorOptions{}
	}
	return record.CorrelatorOptions{SpamKeyFunc: spamKey}
}

// spamKey returns the key of the budget that an event draws on: that of client-go's
// getSpamKey, the source, the object and, if this release has budgets by type, the type.
func spamKey(event *v1.Event) string {
	key := []string{
		event.Source.Component,
		event.Source.Host,
		event.InvolvedObject.Kind,
		event.InvolvedObject.Namespace,
		event.InvolvedObject.Name,
		string(event.InvolvedObject.UID),
		event.InvolvedObject.APIVersion,
	}
	if budgetsByType {
		key = append(key, event.Type)
	}
	if event.Reason == expansion.UnexpandedReferencesReason {
		key = append(key, event.Reason, event.InvolvedObject.FieldPath)
	}
	return strings.Join(key, "")
}
