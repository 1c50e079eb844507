package expansion

import (
	"context"
	"fmt"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

var _ = describe("an event on the pod", func(f *framework.Framework) {
	f.It("names the container, each name once and its places, and no value", func(ctx context.Context) {
		const user, password = "xyzzy", "hunter2"
		createSources(ctx, f, map[string]string{"user": user}, map[string]string{"password": password})
		container := prints([]string{"$(HOST)", "ready"}, []string{"$(PORT)", "$(HOST)", "$(OTHER)", "$(OTHER)"},
			fromConfigMap("USER_NAME", "user"), fromSecret("PASSWORD", "password"),
			literal("URL", "db://$(USER_NAME):$(PASSWORD)@$(HOST):$(PORT)/$(HOST)"))
		pod := pods.Once("named", container)
		pods.RunToEnd(ctx, f, pod)

		expectOneEvent(ctx, f, pod.Name, consumer, "$(HOST) (env URL, command, args), $(PORT) (env URL, args), $(OTHER) (args)")
		shown := pods.EventsAndStatus(ctx, f, pod.Name)
		gomega.Expect(shown).NotTo(gomega.ContainSubstring(user))
		gomega.Expect(shown).NotTo(gomega.ContainSubstring(password))
	})

	f.It("is about a variable that is declared too late, and of one that is misspelt", func(ctx context.Context) {
		pod := pods.Once("late", dumps(literal("URL", "http://$(HOST):$(PROT)"), literal("HOST", "db"), literal("PORT", "80")))
		pods.RunToEnd(ctx, f, pod)

		expectOneEvent(ctx, f, pod.Name, consumer, "$(HOST) (env URL), $(PROT) (env URL)")
	})

	f.It("tells of optional variables of a ConfigMap and a Secret that are not set", func(ctx context.Context) {
		createSources(ctx, f, map[string]string{"other": "value"}, map[string]string{"other": "value"})
		pod := pods.Once("optional", prints([]string{"$(CONFIG_MAP)"}, []string{"$(SECRET)"},
			optional(fromConfigMap("CONFIG_MAP", "key")), optional(fromSecret("SECRET", "key")),
			literal("BOTH", "$(CONFIG_MAP)$(SECRET)")))
		pods.RunToEnd(ctx, f, pod)

		expectOneEvent(ctx, f, pod.Name, consumer, "$(CONFIG_MAP) (env BOTH, command), $(SECRET) (env BOTH, args)")
	})

	f.It("tells of an optional variable of an env file that does not define it", func(ctx context.Context) {
		components.RequireGate(ctx, envFiles)
		pod := withFile(pods.Once("optional-file", prints(nil, []string{"$(FILE)"},
			optional(fromFile("FILE", "KEY")), literal("A", "$(FILE)"))), "OTHER=value\n")
		pods.RunToEnd(ctx, f, pod)

		expectOneEvent(ctx, f, pod.Name, consumer, "$(FILE) (env A, args)")
	})

	f.It("spells out ten names, and counts the rest", func(ctx context.Context) {
		var args []string
		want := ""
		for i := 1; i <= 12; i++ {
			reference := fmt.Sprintf("$(NAME_%d)", i)
			args = append(args, reference)
			if i > 1 && i <= 10 {
				want += ", "
			}
			if i <= 10 {
				want += reference + " (args)"
			}
		}
		pod := pods.Once("many", prints(nil, args))
		pods.RunToEnd(ctx, f, pod)

		expectOneEvent(ctx, f, pod.Name, consumer, want+" and 2 more")
	})

	f.It("is there for each container with such a reference, init and sidecar containers among them", func(ctx context.Context) {
		named := func(name, reference string) v1.Container {
			container := dumps(literal("A", reference))
			container.Name = name
			return container
		}
		sidecar := named("sidecar", "$(OF_SIDECAR)")
		always := v1.ContainerRestartPolicyAlways
		sidecar.RestartPolicy, sidecar.Args = &always, []string{"serve"}
		pod := pods.Once("kinds", named("main", "$(OF_MAIN)"), named("fine", "fine"))
		pod.Spec.InitContainers = []v1.Container{named("init", "$(OF_INIT)"), sidecar}
		pods.RunToEnd(ctx, f, pod)

		expectOneEvent(ctx, f, pod.Name, "init", "$(OF_INIT) (env A)")
		expectOneEvent(ctx, f, pod.Name, "sidecar", "$(OF_SIDECAR) (env A)")
		expectOneEvent(ctx, f, pod.Name, "main", "$(OF_MAIN) (env A)")
		expectNoEvent(ctx, f, pod.Name, "fine")
	})

	f.It("is there for an ephemeral container", func(ctx context.Context) {
		serving := dumps()
		serving.Args = []string{"serve"}
		pod := pods.Create(ctx, f, pods.Once("debugged", serving))
		pod.ResourceVersion = "" // whatever the scheduler and the kubelet write meanwhile
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{
			Name: "debug", Image: images.Envdump, ImagePullPolicy: v1.PullNever, Env: []v1.EnvVar{literal("A", "$(NONE)")},
		}}}
		_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).UpdateEphemeralContainers(ctx, pod.Name, pod, metav1.UpdateOptions{})
		framework.ExpectNoError(err)

		expectOneEvent(ctx, f, pod.Name, "debug", "$(NONE) (env A)")
		expectNoEvent(ctx, f, pod.Name, consumer)
	})

	f.It("is there where the program itself is such a reference, and so cannot be started", func(ctx context.Context) {
		container := dumps()
		container.Command = []string{"$(PROGRAM)"}
		pod := pods.Create(ctx, f, pods.Once("program", container))

		events := awaitEvent(ctx, f, pod.Name, "a reference was left unexpanded", func(event *v1.Event) bool {
			return event.Reason == unexpanded
		})
		expectToSay(about(consumer, events)[0], consumer, "$(PROGRAM) (command)")
	})
}, suite.Shows("Variable expansion", "event"))
