package expansion

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describeIf(whateverTheGate, "in the order of declaration,", func(f *framework.Framework) {
	f.It("an expanded variable may be used by those declared after it, and by no other", func(ctx context.Context) {
		expectEnv(ctx, f, pods.Once("order", dumps(
			literal("BEFORE", "$(FIRST)"), literal("ITSELF", "$(ITSELF)"),
			literal("FIRST", "1"), literal("SECOND", "$(FIRST)2"), literal("THIRD", "$(SECOND)3"),
		)), map[string]string{
			"BEFORE": "$(FIRST)", "ITSELF": "$(ITSELF)", "FIRST": "1", "SECOND": "12", "THIRD": "123",
		})
	})

	f.It("a variable that is declared again has its new value from there on", func(ctx context.Context) {
		expectEnv(ctx, f, pods.Once("again", dumps(
			literal("A", "old"), literal("BETWEEN", "$(A)"), literal("A", "$(A) and new"), literal("AFTER", "$(A)"),
		)), map[string]string{"A": "old and new", "BETWEEN": "old", "AFTER": "old and new"})
	})

	f.It("variables of envFrom come before those of env, which win over them", func(ctx context.Context) {
		createSources(ctx, f, map[string]string{"A": "of envFrom"}, nil)
		container := dumps(literal("BEFORE", "$(A)"), literal("A", "of env"), literal("AFTER", "$(A)"))
		container.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: source}}}}
		expectEnv(ctx, f, pods.Once("env-from", container),
			map[string]string{"BEFORE": "of envFrom", "A": "of env", "AFTER": "of env"})
	})

	f.It("command and args see the variables as they are at the end, wherever they are declared", suite.Shows("Variable expansion", "command"), func(ctx context.Context) {
		pod := pods.Once("words", prints([]string{"$(A)"}, []string{"$(B)-$(A)", "$$(A)", "$(NONE)"},
			literal("B", "$(A)"), literal("A", "old"), literal("A", "new")))
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(pods.Log(ctx, f, pod.Name, consumer)).To(gomega.Equal("new\n$(A)-new\n$(A)\n$(NONE)\n"))
	})

	f.It("a variable of the container wins over the one of a service, once it is declared", suite.Shows("Variable expansion", "services", "defaults"), func(ctx context.Context) {
		service, node := createService(ctx, f, "db", "DB_SERVICE_HOST")
		pod := onNodeWithServices(pods.Once("shadows", dumps(
			literal("BEFORE", "$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)"),
			literal("DB_SERVICE_HOST", "own"),
			literal("AFTER", "$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)"),
		)), node)
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).To(gomega.HaveKeyWithValue("DB_SERVICE_HOST", "own"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("AFTER", "own:8080"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("BEFORE", service.Spec.ClusterIP+":8080"))
	})
}, suite.Shows("Variable expansion", "order"))

var _ = describeIf(whateverTheGate, "a later variable can refer to one whose value comes from", func(f *framework.Framework) {
	f.It("a field, a ConfigMap and a Secret", func(ctx context.Context) {
		createSources(ctx, f, map[string]string{"user": "root"}, map[string]string{"password": "hunter2"})
		expectEnv(ctx, f, pods.Once("sources", dumps(
			fromField("HOST", "metadata.name"), fromConfigMap("USER", "user"), fromSecret("PASSWORD", "password"),
			literal("URL", "db://$(USER):$(PASSWORD)@$(HOST)"),
		)), map[string]string{
			"HOST": "sources", "USER": "root", "PASSWORD": "hunter2", "URL": "db://root:hunter2@sources",
		})
	})

	f.It("an env file", func(ctx context.Context) {
		components.RequireGate(ctx, envFiles)
		expectEnv(ctx, f, withFile(pods.Once("file", dumps(
			literal("BEFORE", "$(HOST)"), fromFile("HOST", "KEY"), literal("URL", "db://$(HOST)"),
		)), "KEY=written\n"), map[string]string{
			"BEFORE": "$(HOST)", "HOST": "written", "URL": "db://written",
		})
	})
})

// looksExpandable is a value that would change if it were expanded.
const looksExpandable = "$(A) $$(A) $$ $(NONE)"

var _ = describeIf(whateverTheGate, "a value is never expanded itself, nor where it is put in, if it comes from", func(f *framework.Framework) {
	f.It("a ConfigMap or a Secret", func(ctx context.Context) {
		values := map[string]string{"key": looksExpandable}
		createSources(ctx, f, values, values)
		expectEnv(ctx, f, pods.Once("values", dumps(
			literal("A", "a"), fromConfigMap("CONFIG_MAP", "key"), fromSecret("SECRET", "key"),
			literal("BOTH", "<$(CONFIG_MAP)><$(SECRET)>"),
		)), map[string]string{
			"A": "a", "CONFIG_MAP": looksExpandable, "SECRET": looksExpandable,
			"BOTH": "<" + looksExpandable + "><" + looksExpandable + ">",
		})
	})

	f.It("an env file", func(ctx context.Context) {
		components.RequireGate(ctx, envFiles)
		expectEnv(ctx, f, withFile(pods.Once("file-value", dumps(
			literal("A", "a"), fromFile("FILE", "KEY"), literal("QUOTED", "<$(FILE)>"),
		)), "KEY="+looksExpandable+"\n"), map[string]string{
			"A": "a", "FILE": looksExpandable, "QUOTED": "<" + looksExpandable + ">",
		})
	})
})
