package tekton

import (
	"context"

	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/tekton"
)

var _ = describe("the examples of the document", func(f *framework.Framework) {
	for _, version := range []string{"v1", "v1beta1"} {
		for _, example := range tekton.Examples {
			args := []any{example.Name + ", in " + version}
			if example.Defaults != nil {
				args = append(args, framework.WithSerial())
			}
			args = append(args, func(ctx context.Context) {
				if example.Defaults != nil {
					configure(ctx, f, "config-defaults", example.Defaults)
				}
				_, err := example.Run(ctx, client(f), version)
				framework.ExpectNoError(err)
			})
			f.It(args...)
		}
	}
}, suite.Shows("TEP-0101", "examples"))
