package podpreset

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// Presets come and go until pods have seen enough of them, or time is up.
const (
	churnedPods    = 200
	churnedMakings = 6 // that pods have seen, none included
	churnTime      = time.Minute
)

// churned is a preset of which each remake has another number, in all of its parts.
const churned = `
metadata: {name: churned}
spec:
  selector: {matchLabels: {role: frontend}}
  env:
  - {name: FIRST, value: "%[1]d"}
  - {name: SECOND, value: "%[1]d"}
  envFrom:
  - {prefix: P%[1]d_, configMapRef: {name: absent, optional: true}}
  volumeMounts:
  - {mountPath: /%[1]d, name: volume-%[1]d}
  volumes:
  - {name: volume-%[1]d, emptyDir: {}}
`

var _ = describe("while presets are made, deleted and remade", func(f *framework.Framework) {
	f.It("each pod has a preset as a whole, of one making, or nothing of it", func(ctx context.Context) {
		end := time.Now().Add(churnTime)
		var mu sync.Mutex
		var created []*v1.Pod
		makings := map[string]int{}
		goOn := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return (len(created) < churnedPods || len(makings) < churnedMakings) && time.Now().Before(end)
		}
		var workers sync.WaitGroup
		workers.Go(func() {
			defer ginkgo.GinkgoRecover()
			for n := 0; goOn(); n++ {
				framework.ExpectNoError(tryCreate(ctx, f, fmt.Sprintf(churned, n)))
				// Long enough for the admission plugin to see some of them, and not all.
				time.Sleep(time.Duration(n%5) * 10 * time.Millisecond)
				err := client(f).Delete(ctx, "churned", metav1.DeleteOptions{})
				if !apierrors.IsNotFound(err) {
					framework.ExpectNoError(err)
				}
			}
		})
		for worker := range 4 {
			workers.Go(func() {
				defer ginkgo.GinkgoRecover()
				for n := 0; goOn(); n++ {
					pod := pods.Create(ctx, f, website(func(pod *v1.Pod) {
						pod.Name = fmt.Sprintf("website-%d-%d", worker, n)
						pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "podenv.dev/never"}}
					}))
					mu.Lock()
					created = append(created, pod)
					makings[envOf(pod.Spec.Containers[0])["FIRST"]]++
					mu.Unlock()
				}
			})
		}
		workers.Wait()

		for _, pod := range created {
			c := pod.Spec.Containers[0]
			n := envOf(c)["FIRST"]
			if n == "" {
				gomega.Expect(c.Env).To(gomega.BeEmpty(), pod.Name)
				gomega.Expect(c.EnvFrom).To(gomega.BeEmpty(), pod.Name)
				gomega.Expect(pathsOf(c)).To(gomega.BeEmpty(), pod.Name)
				gomega.Expect(pod.Spec.Volumes).To(gomega.BeEmpty(), pod.Name)
				gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(applied+"churned"), pod.Name)
				continue
			}
			gomega.Expect(envOf(c)).To(gomega.Equal(map[string]string{"FIRST": n, "SECOND": n}), pod.Name)
			gomega.Expect(c.EnvFrom).To(gomega.HaveLen(1), pod.Name)
			gomega.Expect(c.EnvFrom[0].Prefix).To(gomega.Equal("P"+n+"_"), pod.Name)
			gomega.Expect(pathsOf(c)).To(gomega.Equal(map[string]string{"/" + n: "volume-" + n}), pod.Name)
			gomega.Expect(pod.Spec.Volumes).To(gomega.HaveLen(1), pod.Name)
			gomega.Expect(pod.Annotations).To(gomega.HaveKey(applied+"churned"), pod.Name)
		}
		framework.Logf("%d pods: %d without a preset, the others of %d makings", len(created), makings[""], len(makings)-1)
		gomega.Expect(len(makings)).To(gomega.BeNumerically(">=", churnedMakings), "how many makings %d pods have seen within %s, none included", len(created), churnTime)
	})
})
