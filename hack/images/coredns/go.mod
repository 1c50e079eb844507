// The folder's module. What is built is pinned by vX.Y.Z.mod, which takes the place of this
// file: go build -modfile=vX.Y.Z.mod. A new version starts as a copy of the one before:
//
//	go mod tidy -modfile=vX.Y.Z.mod
//
// and its vX.Y.Z.sum, which then has the sums of whatever go.mod files name, is made again
// with those of what is built:
//
//	rm vX.Y.Z.sum && go list -mod=mod -modfile=vX.Y.Z.mod -deps .
module podenv.dev/hack/images/coredns

go 1.26.0
