// Package tekton runs TaskRuns and PipelineRuns, and reads the environment that each step saw. It
// has the examples of TEP-0101.
package tekton
