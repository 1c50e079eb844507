// Package upstream asks upstream's API server of v1.34 about the pods of test/corpus:
//
//	cd test/upstream/v1.34 && go test -v .
package upstream
