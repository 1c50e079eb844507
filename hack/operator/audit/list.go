package audit

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// each calls visit for every object, page by page. Where the server has forgotten the
// list's snapshot on the way, each goes on with a newer one; where it cannot, each
// calls restart and begins again. An error, also one of visit, may come after some objects were visited.
func (list lister) each(ctx context.Context, pageSize int64, restart func(), visit func(*metav1.ObjectMeta, *v1.PodSpec) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for expired := false; ; {
		objects, next, err := list(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			if options.Continue = goOn(err); options.Continue == "" || expired {
				// What is listed in one piece cannot expire half-way.
				options = metav1.ListOptions{}
				restart()
			}
			expired = true
			continue
		}
		if err != nil {
			return err
		}
		expired = false
		for _, object := range objects {
			if err := visit(podSpec(object)); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		options.Continue = next
	}
}

// goOn returns the token that the server offers with err for a list that need not be
// of one moment, or nothing: see ListOptions.Continue in the API's reference.
func goOn(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
