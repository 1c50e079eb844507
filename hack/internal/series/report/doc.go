// Package report says what each series of patches costs and what it gives: how many
// patches and lines in existing files, and the feature gates as the built binaries
// themselves tell them.
package report
