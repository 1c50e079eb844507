package proof

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/examples"
	"podenv.dev/hack/internal/htmlreport"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/suite"
	"podenv.dev/test/e2e/options"
)

// quiet returns the pipeline without progress lines: a check prints only one line.
func quiet() *pipeline.Pipeline {
	p := *steps
	p.Reporter = nil
	return &p
}

func runExamples(c *check) error {
	gates, err := steps.Gates()
	if err != nil {
		return err
	}
	config, err := gatesOn.value.RESTConfig()
	if err != nil {
		return err
	}
	results, err := examples.Run(c.ctx, config, gates, c.step)
	for _, r := range results {
		c.part(r.Pod, func() error { return nil })
	}
	return err
}

// suiteOf runs a suite with its gates required: no spec may be skipped because a gate is off.
func suiteOf(name string) func(*check) error {
	return func(c *check) error {
		return c.suite(suite.Options{Options: options.Options{RequireGates: featuregates.OfSuite(name)}, Suite: name})
	}
}

// tektonSuite deploys the newest series of Tekton, runs its suite, and deletes it.
func tektonSuite(c *check) error {
	c.step.Now("putting Tekton on the cluster")
	tekton := func(args ...string) error {
		return c.command(*podenv, append([]string{"--plain", "tekton", "--name", testCluster}, args...)...).Run()
	}
	if err := tekton(); err != nil {
		return err
	}
	of := options.Options{RequireGates: featuregates.OfSuite("tekton"), Cluster: testCluster, Minor: steps.Series.Name}
	err := c.suite(suite.Options{Options: of, Suite: "tekton"})
	return errors.Join(err, tekton("--delete"))
}

// skewOfUpgrades is how many minors older the kubelets are that upgrades uses.
func skewOfUpgrades() int {
	if *full {
		return series.SupportedSkew
	}
	return 1
}

// buildComponents builds the components of other builds and minors that upgrades swaps, so that no spec has to compile.
func buildComponents(ctx context.Context) error {
	stock := "stock:" + steps.Series.Name
	builds := [][2]string{{stock, "kube-apiserver"}, {stock, "kubelet"}}
	for _, minor := range steps.Series.Older(repo, skewOfUpgrades()) {
		builds = append(builds, [2]string{"stock:" + minor, "kubelet"})
	}
	newer := steps.Series.Newer(repo)
	if *full && len(newer) > 0 {
		builds = append(builds, [2]string{"stock:" + newer[0], "kube-apiserver"}, [2]string{"stock:" + newer[0], "kube-controller-manager"})
		for _, minor := range newer {
			for _, component := range node.Components {
				builds = append(builds, [2]string{"patched:" + minor, component})
			}
		}
	}
	for _, b := range builds {
		if _, err := steps.Component(ctx, b[0], b[1]); err != nil {
			return err
		}
	}
	return nil
}

// upgradesTimeout is more than the default: beside the checks that compile, all specs of the suite take
// an hour on 2 cores.
const upgradesTimeout = 3 * time.Hour

// upgrades runs the suite that upgrades and downgrades nodes.
func upgrades(c *check) error {
	filter := "!Slow"
	if *full {
		filter = ""
	}
	of := options.Options{
		RequireGates: featuregates.OfSuite("upgrade"), Cluster: testCluster, Minor: steps.Series.Name,
		Older: steps.Series.Older(repo, skewOfUpgrades()), Newer: steps.Series.Newer(repo),
	}
	return c.suite(suite.Options{Options: of, Suite: "upgrade", LabelFilter: filter, Procs: 1, Timeout: upgradesTimeout})
}

// gatesOff recreates the cluster with the gates off, except for those that are locked, and runs the
// specs for that.
func gatesOff(c *check) error {
	gates, suites, err := featuregates.Off(steps.Series.Name)
	if err != nil {
		return err
	}
	if err := gatesOn.value.Delete(c.ctx, c.step); err != nil {
		return err
	}
	off, err := quiet().Cluster(c.ctx, built.value, cluster.Config{Name: testCluster, Workers: 1, Gates: gates, Recreate: true})
	if err != nil {
		return err
	}
	gatesOn.value = off
	for _, name := range suites {
		err = errors.Join(err, c.suite(suite.Options{
			Options: options.Options{JUnit: filepath.Join(repo.Output(), "e2e", name+"-gate-off.xml")}, Suite: name, Focus: gateOffSpecs,
		}))
	}
	c.part("podenv e2e with another series is refused", func() error {
		other := append(steps.Series.Older(repo, 1), steps.Series.Newer(repo)...)[0]
		err := c.command(*podenv, "--plain", "e2e", "--series", other, "--name", testCluster).Run()
		if want := "the cluster runs " + steps.Series.Name; err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("want %q, got error %v", want, err)
		}
		return nil
	})
	return err
}

// suite runs a suite and counts its specs, without those that a filter leaves out. A spec that is
// skipped, and must run on the series, has failed.
func (c *check) suite(o suite.Options) error {
	o.Podenv, o.Kubeconfig, o.Kubectl = *podenv, gatesOn.value.Kubeconfig(), built.value.Build.Binaries["kubectl"]
	result, err := suite.Run(c.ctx, repo, o, c.step)
	if result.JUnit == "" {
		return err
	}
	c.Attr(htmlreport.Attribute, result.Ginkgo)
	if result.Report != "" {
		steps.Reporter.Print(strings.TrimSpace(result.Report))
	}
	cases, readErr := junit.Read(result.JUnit)
	if readErr != nil {
		return readErr
	}
	o.Minor = steps.Series.Name
	if err := requireRun(cases, o); err != nil {
		return err
	}
	c.count(cases)
	if junit.Count(cases).Failed > 0 {
		return nil // the cases are the error
	}
	return err
}

// clusterOperations runs the tests of the packages cluster and node that need a node image.
func clusterOperations(c *check) error {
	gates, err := steps.Gates()
	if err != nil {
		return err
	}
	var flags []string
	for name, on := range gates {
		flags = append(flags, fmt.Sprintf("%s=%t", name, on))
	}
	env := []string{"PODENV_NODE_IMAGE=" + built.value.Image, "PODENV_GATES=" + strings.Join(flags, ",")}
	return c.countGoTest(repo.Root, env, "-p=1", "-timeout=1h", "-run=^TestLive$",
		"podenv.dev/hack/internal/cluster", "podenv.dev/hack/internal/node")
}

// deleteCluster deletes the test cluster, also after Ctrl-C.
func deleteCluster() error {
	if gatesOn.value == nil || *keep {
		return nil
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	step := steps.Reporter.Step("delete cluster " + testCluster)
	return step.End(gatesOn.value.Delete(clean, step))
}

// downLeavesNothing deletes the test cluster with podenv down and checks that nothing is left.
func downLeavesNothing(c *check) error {
	if *keep {
		c.part("the test cluster", func() error { return skipped("--keep") })
		return nil
	}
	kubeconfig, name, docker := gatesOn.value.Kubeconfig(), gatesOn.value.Context(), built.value.Engine.Docker
	if err := c.command(*podenv, "--plain", "down", "--name", testCluster).Run(); err != nil {
		return err
	}
	gatesOn.value = nil
	c.part("no container", func() error {
		left, err := docker(c.ctx, "ps", "--all", "--format", "{{.Names}}", "--filter", "label=io.x-k8s.kind.cluster="+testCluster).Output()
		if err == nil && left != "" {
			err = fmt.Errorf("containers are left: %s", left)
		}
		return err
	})
	c.part("no kubeconfig", func() error {
		if _, err := os.Stat(kubeconfig); err == nil {
			return fmt.Errorf("the kubeconfig is left: %s", kubeconfig)
		}
		config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
		if err != nil {
			return err
		}
		if _, ok := config.Contexts[name]; ok {
			return fmt.Errorf("the kubeconfig still has the context %s", name)
		}
		return nil
	})
	c.part("no network", func() error {
		ids, err := docker(c.ctx, "network", "ls", "--quiet", "--filter", "name=^"+name+"$").Output()
		if err == nil && ids != "" {
			err = fmt.Errorf("the network %s is left", name)
		}
		return err
	})
	return nil
}
