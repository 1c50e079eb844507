// The release that this series of patches stands on. `podenv tree` downloads these
// modules and checks them against go.sum; nothing imports this module.
module podenv.dev/patches/tekton/v1.10

go 1.25.6

require github.com/tektoncd/pipeline v1.10.0
