package proof

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"

	"podenv.dev/featuregates"
)

// TestCompiling has the checks that use the CPU. The other tests mostly wait.
func TestCompiling(t *testing.T) {
	l := newLane(t)
	l.check("lint", "lint", host.need, lint)
	l.check("unit tests", "unit", host.need, unitTests)
	l.check("accepted upstream", "upstream", host.need, acceptedUpstream)
	l.check("patches round trip", "source", needBuild, func(c *check) error { return roundTrip(c, built.value.Tree) })
	l.check("patches of Tekton round trip", "source", host.need, tektonRoundTrip)
	l.check("export onto a pristine tag", "source", needBuild, exportOntoTag)
	l.prepare("components of other releases", "upgrade", needComponents)
	l.check("each patch by itself", "patches", needBuild, func(c *check) error { return eachPatch(c, built.value.Tree) })
	l.check("upstream tests", "upstream", needBuild, upstreamTests)
	l.check("upstream tests of Tekton", "upstream", host.need, tektonTests)
	l.check("PodPresets of v1.19", "upstream", needBuild, oldFixtures)
	l.check("server tarball", "image", needBuild, serverTarball)
	l.check("packages", "image", needBuild, packagesInstall)
	l.check("policies from PodPresets", "e2e", needBuild, policies)
	l.check("kind builds from the server tarball", "image", needTarball, kindBuilds)
	if *full {
		l.check("generators leave the release as it is", "source", needStock, generatorsLeaveTheRelease)
		l.check("generators run for all packages that a change reaches", "source", needStock, generatorsReach)
		l.check("kubelet for Windows", "source", needBuild, func(c *check) error { return kubeletForWindows(c, built.value.Tree) })
	}
}

// TestClusters has the suites, one after another on one cluster.
func TestClusters(t *testing.T) {
	l := newLane(t)
	t.Cleanup(func() {
		if err := deleteCluster(); err != nil {
			t.Error(err)
		}
	})
	l.check("feature gates", "source", needBuild, featureGates)
	l.check("node image with plain kind", "image", needBuild, plainKind)
	l.check("stories", "e2e", needCluster, runExamples)
	l.check("e2e", "e2e", needCluster, suiteOf("envfiles"))
	l.check("e2e relaxed names", "e2e", needCluster, suiteOf("relaxed"))
	l.check("e2e variable expansion", "e2e", needCluster, suiteOf("expansion"))
	l.check("e2e pod presets", "e2e", needCluster, suiteOf("podpreset"))
	for _, name := range otherSuites(steps.Series.Name) {
		l.check("e2e "+name, "e2e", needCluster, suiteOf(name))
	}
	l.check("client-go of v1.19", "e2e", needCluster, oldClient)
	if *full {
		l.check("e2e Tekton", "e2e", needCluster, tektonSuite)
	}
	// It disconnects a node from the API server for a minute.
	l.check("e2e on a kubelet without an API server", "e2e", needCluster, suiteOf("standalone"))
	l.check("upgrade, downgrade and skew", "upgrade", func(c *check) { needCluster(c); needComponents(c) }, upgrades)
	l.check("e2e with the gate off", "e2e", needCluster, gatesOff)
	l.check("down leaves nothing", "e2e", needCluster, downLeavesNothing)
}

// ownChecks are the suites that a check is for, with a name that says more or other needs.
var ownChecks = []string{"envfiles", "relaxed", "expansion", "podpreset", "standalone", "tekton", "upgrade"}

// otherSuites are the suites that featuregates/ declares beside these.
func otherSuites(minor string) (others []string) {
	states, _ := featuregates.In(minor) // an error would end the check of the gates
	for _, s := range states {
		for _, name := range s.Suites {
			if !slices.Contains(ownChecks, name) && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	return others
}

func TestTheSuiteOfAFifthFeatureRuns(t *testing.T) {
	if others := otherSuites("v1.33"); len(others) > 0 {
		t.Errorf("no check is for the suites %q", others)
	}
	defer featuregates.Add("PodTides", featuregates.Feature{
		Specs:  featuregate.VersionedSpecs{{Version: version.MustParse("1.29"), PreRelease: featuregate.Alpha}},
		Suites: []string{"tides", "upgrade"},
	})()
	if others := otherSuites("v1.33"); !slices.Equal(others, []string{"tides"}) {
		t.Errorf("the other suites are %q", others)
	}
}

// TestOwnClusters has the checks that create and delete clusters of their own. One of these and
// one of TestClusters exist at a time: the kernel's default of 128 inotify instances has room
// for two.
func TestOwnClusters(t *testing.T) {
	l := newLane(t)
	l.check("cluster operations", "image", needBuild, clusterOperations)
	l.check("e2e of the release", "e2e", needBuild, releaseSpecs)
	l.check("upgrade by kubeadm through all minors", "atlas", needBuild, kubeadmAtlas)
	if *full {
		l.check("nodes pull signed images alone", "image", needBuild, imageVerifier)
		l.check("several control planes", "image", needBuild, severalControlPlanes)
		l.check("upgrade by kubeadm", "upgrade", needBuild, kubeadmUpgrade)
		l.check("walk of a gate", "upgrade", needBuild, gateWalk)
		l.check("up goes on after Ctrl-C", "e2e", needBuild, upGoesOnAfterInterrupts)
	}
}
