// The folder's module. What is built is pinned by vX.Y.Z.mod, which takes the place of
// this file: go build -modfile=vX.Y.Z.mod
module podenv.dev/hack/images/etcd

go 1.26.0
