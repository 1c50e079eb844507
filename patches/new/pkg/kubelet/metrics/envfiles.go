package metrics

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// EnvFileReadDurationKey is the name of EnvFileReadDuration.
	EnvFileReadDurationKey = "env_file_read_duration_seconds"
	// EnvFileErrorsTotalKey is the name of EnvFileErrorsTotal.
	EnvFileErrorsTotalKey = "env_file_errors_total"
)

var (
	// EnvFileReadDuration is a histogram that tracks how long it takes (in seconds) to read and parse an env file.
	// A read takes tens of microseconds, and tens of milliseconds if the file was changed just before.
	EnvFileReadDuration = metrics.NewHistogram(
		&metrics.HistogramOpts{
			Subsystem:      KubeletSubsystem,
			Name:           EnvFileReadDurationKey,
			Help:           "Duration in seconds to read and parse an env file of a container, successfully or not.",
			Buckets:        metrics.ExponentialBuckets(0.00001, 2, 20),
			StabilityLevel: metrics.ALPHA,
		},
	)

	// EnvFileErrorsTotal is a counter that tracks the starts of containers that failed because of an env file.
	// Broken down by reason: those of package envfile.
	EnvFileErrorsTotal = metrics.NewCounterVec(
		&metrics.CounterOpts{
			Subsystem:      KubeletSubsystem,
			Name:           EnvFileErrorsTotalKey,
			Help:           "Cumulative number of container starts that failed because a variable could not be set from an env file. Broken down by reason.",
			StabilityLevel: metrics.ALPHA,
		},
		[]string{"reason"},
	)
)

func registerEnvFileMetrics() {
	if utilfeature.DefaultFeatureGate.Enabled(features.EnvFiles) {
		legacyregistry.MustRegister(EnvFileReadDuration)
		legacyregistry.MustRegister(EnvFileErrorsTotal)
	}
}
