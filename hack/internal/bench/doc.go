// Package bench measures what this branch adds, beside what it is measured against,
// and writes tables of it.
package bench
