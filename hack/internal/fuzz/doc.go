// Package fuzz finds Go fuzz targets and runs each for a number of executions.
package fuzz
