// Package doctor examines whether a host can do what podenv needs, before an hour's
// work finds out: each finding names its remedy. It changes nothing, and uses no
// network.
package doctor
