package source

import (
	"context"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

// CheckUnedited returns an error, with ErrEdited in its chain where the tree has edits, if
// the tree of s must not be deleted. A series that patches/ no longer has needs only a name.
func CheckUnedited(ctx context.Context, l layout.Layout, s series.Series, stock bool) error {
	_, err := newAssembly(l, s, Options{Stock: stock}, nil).find(ctx)
	return err
}
