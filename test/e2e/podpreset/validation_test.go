package podpreset

import (
	"context"
	"strings"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/suite"
)

const (
	selector = "  selector: {matchLabels: {role: frontend}}\n"
	variable = "  env: [{name: A, value: '1'}]\n"
	volume   = "  volumes: [{name: v, emptyDir: {}}]\n"
	mount    = "  volumeMounts: [{name: v, mountPath: /v}]\n"
)

var _ = describe("validations", func(f *framework.Framework) {
	for _, tt := range []struct{ row, says, spec, field string }{
		{"selector", "the selector must be defined", variable, "spec.selector"},
		{"selector", "the selector must not be empty", "  selector: {}\n" + variable, "spec.selector"},
		{"one of", "at least one of env, envFrom, or volumes with mounts", selector, "spec: Required"},
		{"volume mount", "a volume has to have a mount", selector + volume, "spec.volumes[0].name"},
		{"volume mount", "a mount has to have a volume", selector + mount, "spec.volumeMounts[0].name"},
		{"api", "the API's own validation of env applies", selector + "  env: [{name: 'A=B', value: '1'}]\n", "spec.env[0].name"},
		{"api", "the API's own validation of envFrom applies", selector + "  envFrom: [{configMapRef: {name: 'A B'}}]\n", "spec.envFrom[0].configMapRef.name"},
		{"api", "the API's own validation of volumes applies", selector + "  volumes: [{name: V, emptyDir: {}}]\n  volumeMounts: [{name: V, mountPath: /v}]\n", "spec.volumes[0].name"},
		{"api", "the API's own validation of mounts applies", selector + volume + "  volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /v}]\n", "spec.volumeMounts[1].mountPath"},
	} {
		f.It(tt.says, suite.Shows("Pod Preset", tt.row), func(ctx context.Context) {
			err := tryCreate(ctx, f, "metadata: {name: p}\nspec:\n"+tt.spec)
			gomega.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%v", err)
			gomega.Expect(err.Error()).To(gomega.ContainSubstring(tt.field))
		})
	}

	f.It("each of the three alternatives is enough", suite.Shows("Pod Preset", "one of"), func(ctx context.Context) {
		for name, spec := range map[string]string{
			"env": variable, "env-from": "  envFrom: [{secretRef: {name: s}}]\n", "volumes": volume + mount,
		} {
			framework.ExpectNoError(tryCreate(ctx, f, "metadata: {name: "+name+"}\nspec:\n"+selector+spec))
		}
	})

	f.It("a name has at most 53 bytes", func(ctx context.Context) {
		framework.ExpectNoError(tryCreate(ctx, f, "metadata: {name: "+strings.Repeat("a", 53)+"}\nspec:\n"+selector+variable))
		err := tryCreate(ctx, f, "metadata: {name: "+strings.Repeat("a", 54)+"}\nspec:\n"+selector+variable)
		gomega.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%v", err)
		gomega.Expect(err.Error()).To(gomega.ContainSubstring("metadata.name"))
	})

	f.It("the spec is immutable, the metadata is not", suite.Shows("Pod Preset", "immutable"), func(ctx context.Context) {
		framework.ExpectNoError(tryCreate(ctx, f, allowDatabase))
		preset, err := client(f).Get(ctx, "allow-database", metav1.GetOptions{})
		framework.ExpectNoError(err)
		preset.SetLabels(map[string]string{"a": "b"})
		preset, err = client(f).Update(ctx, preset, metav1.UpdateOptions{})
		framework.ExpectNoError(err)
		framework.ExpectNoError(unstructured.SetNestedStringMap(preset.Object, map[string]string{"role": "other"}, "spec", "selector", "matchLabels"))
		_, err = client(f).Update(ctx, preset, metav1.UpdateOptions{})
		gomega.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%v", err)
		gomega.Expect(err.Error()).To(gomega.ContainSubstring("spec: Forbidden"))
	})

	f.It("server-side apply makes a preset, leaves it alone the second time, and cannot change its spec", func(ctx context.Context) {
		apply := func(text string) (*unstructured.Unstructured, error) {
			return client(f).Apply(ctx, "allow-database", parse(text), metav1.ApplyOptions{FieldManager: "spec"})
		}
		made, err := apply(allowDatabase)
		framework.ExpectNoError(err)
		again, err := apply(allowDatabase)
		framework.ExpectNoError(err)
		gomega.Expect(again.GetResourceVersion()).To(gomega.Equal(made.GetResourceVersion()))
		_, err = apply(strings.Replace(allowDatabase, "6379", "1", 1))
		gomega.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%v", err)
		gomega.Expect(err.Error()).To(gomega.ContainSubstring("spec: Forbidden"))
	})

	f.It("kubectl explains, gets and describes presets", func(ctx context.Context) {
		framework.ExpectNoError(tryCreate(ctx, f, allowDatabase))
		explained := strings.Fields(suite.RunKubectl(ctx, "explain", "podpreset.spec.selector")) // kubectl breaks lines
		gomega.Expect(strings.Join(explained, " ")).To(gomega.ContainSubstring("at least one label or expression"))
		gomega.Expect(suite.RunKubectl(ctx, "explain", "podpreset.spec")).To(gomega.MatchRegexp(`selector\s+<LabelSelector> -required-`))
		table := suite.RunKubectl(ctx, "get", "podpresets", "--namespace", f.Namespace.Name, "-o", "wide")
		gomega.Expect(table).To(gomega.MatchRegexp(`allow-database +role=frontend +1 +0 +1 .*DB_PORT +/cache`))
		gomega.Expect(suite.RunKubectl(ctx, "describe", "podpreset", "allow-database", "--namespace", f.Namespace.Name)).To(gomega.ContainSubstring("DB_PORT"))
	})

	f.It("clients discover the API: its verbs and its schema", func(ctx context.Context) {
		discovery := f.ClientSet.Discovery()
		list, err := discovery.ServerResourcesForGroupVersion(presets.GroupVersion().String())
		framework.ExpectNoError(err)
		gomega.Expect(list.APIResources).To(gomega.HaveLen(1))
		resource := list.APIResources[0]
		gomega.Expect(resource).To(gomega.And(gomega.HaveField("Name", "podpresets"), gomega.HaveField("SingularName", "podpreset"),
			gomega.HaveField("Kind", "PodPreset"), gomega.HaveField("Namespaced", true)))
		gomega.Expect([]string(resource.Verbs)).To(gomega.ConsistOf("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"))

		paths, err := discovery.OpenAPIV3().Paths()
		framework.ExpectNoError(err)
		gomega.Expect(paths).To(gomega.HaveKey("apis/" + presets.GroupVersion().String()))
		schema, err := paths["apis/"+presets.GroupVersion().String()].Schema("application/json")
		framework.ExpectNoError(err)
		gomega.Expect(string(schema)).To(gomega.ContainSubstring(`"io.k8s.api.settings.v1alpha1.PodPresetSpec"`))
	})
})
