// Package testimages packs the images that test pods run: a shell with the usual
// tools, and a program that prints its environment, with no other files.
package testimages
