// Package preset shows what PodPresets would inject into pods, and which are in conflict
// with them. What is injected is decided by the package that the API server's admission
// plugin uses; pods and presets are defaulted first, as the API server does.
package preset
