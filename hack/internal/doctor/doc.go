// Package doctor checks whether a host can do what podenv needs, before a long build fails on
// it. Each finding has a remedy. The checks change nothing and use no network.
package doctor
