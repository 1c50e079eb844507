package podpreset

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/settings/inject"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podpresetutil "k8s.io/kubernetes/pkg/api/podpreset"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/settings"
	_ "k8s.io/kubernetes/pkg/apis/settings/install"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	podpresetstrategy "k8s.io/kubernetes/pkg/registry/settings/podpreset"
)

const namespace = "myns"

// database is the preset of the document's first example.
func database() *settingsv1alpha1.PodPreset {
	return &settingsv1alpha1.PodPreset{
		ObjectMeta: metav1.ObjectMeta{Name: "allow-database", Namespace: namespace, UID: "1", ResourceVersion: "7"},
		Spec: settingsv1alpha1.PodPresetSpec{
			Selector:     metav1.LabelSelector{MatchLabels: map[string]string{"role": "frontend"}},
			Env:          []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}},
			Volumes:      []v1.Volume{{Name: "cache-volume", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
			VolumeMounts: []v1.VolumeMount{{Name: "cache-volume", MountPath: "/cache"}},
		},
	}
}

func website() *api.Pod {
	return &api.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: namespace, Labels: map[string]string{"role": "frontend"}},
		Spec:       api.PodSpec{Containers: []api.Container{{Name: "website", Image: "ecorp/website"}}},
	}
}

// newPlugin returns a plugin that knows objects.
func newPlugin(t testing.TB, on bool, objects ...runtime.Object) (*Plugin, *fake.Clientset) {
	t.Helper()
	featurestest.SetGate(t, features.PodPreset, on)
	client := fake.NewSimpleClientset(objects...)
	stopCh := make(chan struct{})
	t.Cleanup(func() { close(stopCh) })
	factory := informers.NewSharedInformerFactory(client, 0)
	p := NewPlugin()
	// As the initializer does it, which takes other arguments in v1.29.
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	p.SetDrainedNotification(stopCh)
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(factory)
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	factory.Start(stopCh)
	factory.WaitForCacheSync(stopCh)
	if on && !p.WaitForReady() {
		t.Fatal("the presets are not known after 10s")
	}
	return p, client
}

// attributes are those of the creation of pod.
func attributes(pod *api.Pod, dryRun bool) admission.Attributes {
	return admission.NewAttributesRecord(pod, nil, api.Kind("Pod").WithVersion("version"), pod.Namespace, pod.Name,
		api.Resource("pods").WithVersion("version"), "", admission.Create, &metav1.CreateOptions{}, dryRun, nil)
}

// warnings records what the client is warned of.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// annotations records what the audit log would have.
type annotations struct {
	admission.Attributes
	texts map[string]string
}

func (a annotations) AddAnnotation(key, value string) error {
	a.texts[key] = value
	return nil
}

// admit has the plugin inject, and returns what it warns of.
func admit(t *testing.T, p *Plugin, a admission.Attributes) warnings {
	t.Helper()
	return admitIn(t, request(t), p, a)
}

func admitIn(t *testing.T, ctx context.Context, p *Plugin, a admission.Attributes) warnings {
	t.Helper()
	var said warnings
	if err := p.Admit(warning.WithWarningRecorder(ctx, &said), a, nil); err != nil {
		t.Fatal(err)
	}
	return said
}

// request is the context of a request that ends with the test.
func request(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{})
}

// create has pod go through both phases as the API server has it, which makes new attributes
// and another copy of the pod for the second.
func create(t *testing.T, p *Plugin, pod *api.Pod, dryRun bool) {
	t.Helper()
	ctx := request(t)
	admitIn(t, ctx, p, attributes(pod, dryRun))
	validate(t, ctx, p, pod, dryRun)
}

// validate has the plugin see pod as it will be stored.
func validate(t *testing.T, ctx context.Context, p *Plugin, pod *api.Pod, dryRun bool) {
	t.Helper()
	pod = pod.DeepCopy()
	pod.UID = "u"
	if err := p.Validate(ctx, attributes(pod, dryRun), nil); err != nil {
		t.Fatal(err)
	}
}

// timers run what is to run later, once the test lets the time pass.
type timers struct {
	now     time.Duration
	waiting []timer
}

type timer struct {
	at  time.Duration
	run func()
}

// timersOf are those of p from now on.
func timersOf(p *Plugin) *timers {
	t := &timers{}
	p.events.after = func(d time.Duration, run func()) { t.waiting = append(t.waiting, timer{t.now + d, run}) }
	return t
}

// pass runs what is to run in the time d, in its order.
func (t *timers) pass(d time.Duration) {
	end := t.now + d
	for {
		sort.SliceStable(t.waiting, func(i, j int) bool { return t.waiting[i].at < t.waiting[j].at })
		if len(t.waiting) == 0 || t.waiting[0].at > end {
			t.now = end
			return
		}
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.now = next.at
		next.run()
	}
}

// stored is the pod website as it is stored.
func stored(uid types.UID) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: namespace, UID: uid}}
}

// awaitEvents returns the events on pods once there are as many. They are sent one after
// another, and take a moment.
func awaitEvents(client *fake.Clientset, many int) (found []v1.Event) {
	_ = wait.PollUntilContextTimeout(context.Background(), time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			found = events.Items
		}
		return len(found) >= many, err
	})
	return found
}

func TestAdmitInjects(t *testing.T) {
	p, _ := newPlugin(t, true, database())
	pod := website()
	admit(t, p, attributes(pod, false))
	c := pod.Spec.Containers[0]
	if len(c.Env) != 1 || c.Env[0].Name != "DB_PORT" || c.Env[0].Value != "6379" {
		t.Errorf("variables: %v, want DB_PORT", c.Env)
	}
	if len(c.VolumeMounts) != 1 || len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].EmptyDir == nil {
		t.Errorf("mounts %v of volumes %v, want the preset's", c.VolumeMounts, pod.Spec.Volumes)
	}
	if got := pod.Annotations["podpreset.admission.kubernetes.io/podpreset-allow-database"]; got != "7" {
		t.Errorf("the annotation is %q, want the resource version", got)
	}
}

func TestAdmitLeavesAlone(t *testing.T) {
	deleted := database()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	deleted.Finalizers = []string{"example.com/f"}
	other := database()
	other.Namespace = "other"
	tests := []struct {
		name   string
		preset *settingsv1alpha1.PodPreset
		change func(*api.Pod)
		off    bool
	}{
		{name: "with the gate off", preset: database(), off: true},
		{name: "a pod of another namespace", preset: other},
		{name: "a preset that is being deleted", preset: deleted},
		{name: "other labels", preset: database(), change: func(pod *api.Pod) { pod.Labels = nil }},
		{name: "an excluded pod", preset: database(), change: func(pod *api.Pod) {
			pod.Annotations = map[string]string{inject.ExcludeAnnotation: "true"}
		}},
		{name: "a mirror pod", preset: database(), change: func(pod *api.Pod) {
			pod.Annotations = map[string]string{api.MirrorPodAnnotationKey: "x"}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := newPlugin(t, !tt.off, tt.preset)
			pod := website()
			if tt.change != nil {
				tt.change(pod)
			}
			admit(t, p, attributes(pod, false))
			if len(pod.Spec.Containers[0].Env) > 0 {
				t.Error("the preset was injected")
			}
		})
	}
	p, _ := newPlugin(t, true, database())
	for _, of := range []struct{ resource, subresource string }{{"pods", "binding"}, {"podtemplates", ""}} {
		pod := website()
		admit(t, p, admission.NewAttributesRecord(pod, nil, api.Kind("Pod").WithVersion("version"), namespace, pod.Name,
			api.Resource(of.resource).WithVersion("version"), of.subresource, admission.Create, &metav1.CreateOptions{}, false, nil))
		if len(pod.Spec.Containers[0].Env) > 0 {
			t.Errorf("the preset was injected into %s/%s", of.resource, of.subresource)
		}
	}
}

func TestGateOffWatchesNothing(t *testing.T) {
	for _, on := range []bool{true, false} {
		_, client := newPlugin(t, on, database())
		if asked := len(client.Actions()) > 0; asked != on {
			t.Errorf("gate %t: the plugin asked for %v", on, client.Actions())
		}
	}
}

func TestWhatThePluginLacksIsSaid(t *testing.T) {
	featurestest.SetGate(t, features.PodPreset, true)
	client := fake.NewSimpleClientset()
	p := NewPlugin()
	for _, step := range []struct {
		lacks string
		give  func()
	}{
		{"has not been told of the feature gates", func() { p.InspectFeatureGates(utilfeature.DefaultFeatureGate) }},
		{"has no client", func() { p.SetExternalKubeClientSet(client) }},
		{"does not watch PodPresets", func() { p.SetExternalKubeInformerFactory(informers.NewSharedInformerFactory(client, 0)) }},
	} {
		if err := p.ValidateInitialization(); err == nil || !strings.Contains(err.Error(), step.lacks) {
			t.Errorf("got %v, want that it %s", err, step.lacks)
		}
		step.give()
	}
	if err := p.ValidateInitialization(); err != nil {
		t.Error(err)
	}
}

// TestNoPodIsCreatedBeforeThePresetsAreKnown has a pod that comes while the API server starts.
func TestNoPodIsCreatedBeforeThePresetsAreKnown(t *testing.T) {
	featurestest.SetGate(t, features.PodPreset, true)
	client := fake.NewSimpleClientset(database())
	factory := informers.NewSharedInformerFactory(client, 0)
	p := NewPlugin()
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(factory)
	stopCh := make(chan struct{})
	defer close(stopCh)
	admitted := make(chan struct{})
	pod := website()
	go func() {
		defer close(admitted)
		admit(t, p, attributes(pod, false))
	}()
	select {
	case <-admitted:
		t.Error("it was admitted")
	case <-time.After(10 * time.Millisecond): // a plugin that waits passes, however long this is
	}
	factory.Start(stopCh)
	<-admitted
	if len(pod.Spec.Containers[0].Env) != 1 {
		t.Errorf("variables: %v, want DB_PORT", pod.Spec.Containers[0].Env)
	}
}

// TestARequestThatHasEndedIsLeft has a client that is gone: what one preset was about to add is no pod's.
func TestARequestThatHasEndedIsLeft(t *testing.T) {
	p, _ := newPlugin(t, true, database())
	ctx, cancel := context.WithCancel(request(t))
	cancel()
	pod := website()
	if err := p.Admit(ctx, attributes(pod, false), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the request", err)
	}
	if len(pod.Spec.Volumes)+len(pod.Annotations) > 0 {
		t.Errorf("volumes %v, annotations %v: want the pod as it was", pod.Spec.Volumes, pod.Annotations)
	}
}

func TestConflictIsSaidAndRefusesNothing(t *testing.T) {
	p, _ := newPlugin(t, true, database())
	pod := website()
	pod.Spec.Containers[0].Env = []api.EnvVar{{Name: "DB_PORT", Value: "hidden"}}
	audited := annotations{Attributes: attributes(pod, false), texts: map[string]string{}}
	said := admit(t, p, audited)
	want := "PodPreset allow-database is not injected: Conflict on pod preset. Duplicate env DB_PORT."
	if len(said) != 1 || said[0] != want {
		t.Errorf("warnings: %q, want %q", said, want)
	}
	key := "podpreset.admission.kubernetes.io/conflict-allow-database"
	if len(audited.texts) != 1 || audited.texts[key] != "Duplicate env DB_PORT" {
		t.Errorf("audit annotations: %q, want %s, without a value", audited.texts, key)
	}
	if len(pod.Spec.Volumes) > 0 || len(pod.Annotations) > 0 {
		t.Errorf("a part of the preset was injected: %v, %v", pod.Spec.Volumes, pod.Annotations)
	}
}

// TestTokenNeedsAServiceAccount is why a preset may be in conflict with a pod: the API server
// refuses a pod with a token of the service account that the pod does not have.
func TestTokenNeedsAServiceAccount(t *testing.T) {
	expires := int64(3600)
	preset := database()
	preset.Spec.Volumes[0].VolumeSource = v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
		Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &expires}}}}}
	for _, tt := range []struct {
		name     string
		plugin   bool
		account  string
		injected bool
	}{
		{"the plugin ServiceAccount will give it one", true, "", true},
		{"it names one", false, "own", true},
		{"it has none", false, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := newPlugin(t, true, preset)
			p.SetServiceAccountPlugin(tt.plugin)
			pod := website()
			pod.Spec.ServiceAccountName = tt.account
			said := admit(t, p, attributes(pod, false))
			if injected := len(pod.Spec.Volumes) > 0; injected != tt.injected {
				t.Errorf("injected: %t, want %t", injected, tt.injected)
			}
			if refused := strings.Contains(strings.Join(said, ""), "Volume cache-volume has a token of a service account"); refused == tt.injected {
				t.Errorf("warnings: %q", said)
			}
		})
	}
}

func TestSourcesThatExistAreLookedInto(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "settings", Namespace: namespace}
	reference := api.LocalObjectReference{Name: "settings"}
	configMap := &v1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"DB_PORT": "1"}}
	secret := &v1.Secret{ObjectMeta: meta, Data: map[string][]byte{"DB_PORT": nil}}
	fromConfigMap := api.EnvFromSource{ConfigMapRef: &api.ConfigMapEnvSource{LocalObjectReference: reference}}
	fromSecret := api.EnvFromSource{SecretRef: &api.SecretEnvSource{LocalObjectReference: reference}}
	for _, tt := range []struct {
		name     string
		object   runtime.Object
		source   api.EnvFromSource
		injected bool
	}{
		{"a ConfigMap", configMap, fromConfigMap, false},
		{"a ConfigMap that does not exist", secret, fromConfigMap, true},
		{"a Secret", secret, fromSecret, false},
		{"a Secret that does not exist", configMap, fromSecret, true},
		{"no source", configMap, api.EnvFromSource{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := newPlugin(t, true, database(), tt.object)
			pod := website()
			pod.Spec.Containers[0].EnvFrom = []api.EnvFromSource{tt.source}
			admit(t, p, attributes(pod, false))
			if injected := len(pod.Spec.Containers[0].Env) > 0; injected != tt.injected {
				t.Errorf("injected: %t", injected)
			}
		})
	}
}

// TestLookUpsAreBounded is why a preset with many ConfigMaps keeps no pod from being created.
func TestLookUpsAreBounded(t *testing.T) {
	preset := database()
	for i := 0; i < 1000; i++ {
		preset.Spec.EnvFrom = append(preset.Spec.EnvFrom, v1.EnvFromSource{ConfigMapRef: &v1.ConfigMapEnvSource{
			LocalObjectReference: v1.LocalObjectReference{Name: fmt.Sprint("settings-", i)}}})
	}
	p, client := newPlugin(t, true, preset)
	now, reads := time.Now(), 0
	p.now = func() time.Time { return now }
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		now = now.Add(100 * time.Millisecond)
		return false, nil, nil
	})
	pod := website()
	pod.Spec.Containers[0].Env = []api.EnvVar{{Name: "A", Value: "1"}}
	admit(t, p, attributes(pod, false))
	if want := int(lookUpTimeout / (100 * time.Millisecond)); reads != want {
		t.Errorf("%d ConfigMaps were read, each in 100ms: want %d", reads, want)
	}
	if len(pod.Spec.Containers[0].EnvFrom) != 1000 {
		t.Errorf("%d of 1000 sources were injected", len(pod.Spec.Containers[0].EnvFrom))
	}
}

func TestEventOnThePodThatWasCreated(t *testing.T) {
	conflicting := func(name string) *api.Pod {
		pod := website()
		pod.Name, pod.Spec.Containers[0].Env = name, []api.EnvVar{{Name: "DB_PORT", Value: "hidden"}}
		return pod
	}
	for _, tt := range []struct {
		name   string
		stored types.UID
		dryRun bool
		want   bool
	}{
		{"created", "u", false, true},
		{"refused by a later plugin", "", false, false},
		{"refused, and another of that name created", "other", false, false},
		{"dry run", "u", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			youngest := stored("u")
			youngest.Name = "youngest" // and so behind the other in lists
			objects := []runtime.Object{database(), youngest}
			if tt.stored != "" {
				objects = append(objects, stored(tt.stored))
			}
			p, client := newPlugin(t, true, objects...)
			timers := timersOf(p)
			create(t, p, conflicting("website"), tt.dryRun)
			timers.pass(time.Hour)
			create(t, p, conflicting(youngest.Name), false) // no event comes after that of this pod
			timers.pass(time.Hour)
			want := 1
			if tt.want {
				want = 2
			}
			events := awaitEvents(client, want)
			if len(events) != want || events[want-1].InvolvedObject.Name != youngest.Name {
				t.Fatalf("events: %v, want one on the pod: %t", events, tt.want)
			}
			if event := events[0]; tt.want && (event.Source.Component != "podpreset.admission.kubernetes.io/allow-database" || event.Reason != "conflict" ||
				event.Message != "Conflict on pod preset. Duplicate env DB_PORT." || event.InvolvedObject.UID != "u" || event.Type != v1.EventTypeWarning) {
				t.Errorf("the event is not the document's: %v", event)
			}
			if n := p.events.pending.Load(); n != 0 {
				t.Errorf("%d pods are still waited for", n)
			}
		})
	}
}

// TestEventsOfOnePodAreBounded is why hundreds of presets in conflict do not fill etcd with
// events.
func TestEventsOfOnePodAreBounded(t *testing.T) {
	for _, tt := range []struct{ presets, named int }{{10, 10}, {11, 9}, {400, 9}} {
		t.Run(fmt.Sprintf("%d presets", tt.presets), func(t *testing.T) {
			objects := []runtime.Object{stored("u")}
			for i := 0; i < tt.presets; i++ {
				preset := database()
				preset.Name = fmt.Sprintf("preset-%03d", i)
				objects = append(objects, preset)
			}
			p, client := newPlugin(t, true, objects...)
			pod := website()
			pod.Spec.Containers[0].Env = []api.EnvVar{{Name: "DB_PORT", Value: "1"}}
			timers := timersOf(p)
			create(t, p, pod, false)
			timers.pass(eventDelay)
			want := map[string]string{}
			for i := 0; i < tt.named; i++ {
				want[fmt.Sprintf("podpreset.admission.kubernetes.io/preset-%03d", i)] = "Conflict on pod preset. Duplicate env DB_PORT."
			}
			if more := tt.presets - tt.named; more > 0 {
				want["podpreset.admission.kubernetes.io"] = fmt.Sprintf("Conflict on pod preset. %d more PodPresets are in conflict.", more)
			}
			got := map[string]string{}
			for _, event := range awaitEvents(client, len(want)) {
				got[event.Source.Component] = event.Message
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("events: %q, want %q", got, want)
			}
		})
	}
}

// TestEventOfAPodThatIsStoredLate has a pod that webhooks take their time to judge.
func TestEventOfAPodThatIsStoredLate(t *testing.T) {
	for _, tt := range []struct {
		after, comes time.Duration
		want         int
	}{
		{after: eventDelay, comes: 2 * eventDelay, want: 1},
		{after: time.Minute, comes: 3 * time.Second, want: 1},
		{after: 64 * time.Second, want: 0},
	} {
		t.Run(tt.after.String(), func(t *testing.T) {
			p, client := newPlugin(t, true, database())
			timers := timersOf(p)
			pod := website()
			pod.Spec.Containers[0].Env = []api.EnvVar{{Name: "DB_PORT", Value: "1"}}
			create(t, p, pod, false)
			timers.pass(tt.after)
			if n := int(p.events.pending.Load()); n != tt.want {
				t.Fatalf("%d pods are waited for, want %d", n, tt.want)
			}
			if tt.want == 0 {
				return
			}
			if err := client.Tracker().Add(stored("u")); err != nil {
				t.Fatal(err)
			}
			timers.pass(tt.comes)
			if events := awaitEvents(client, 1); len(events) != 1 {
				t.Errorf("%d events, want 1", len(events))
			}
			if n := p.events.pending.Load(); n != 0 {
				t.Errorf("%d pods are still waited for", n)
			}
		})
	}
}

// TestRefusedPodsTakeNoRoom has as many pods that are never stored as events can wait for.
func TestRefusedPodsTakeNoRoom(t *testing.T) {
	p, client := newPlugin(t, true, database())
	timers := timersOf(p)
	conflicts := []inject.Conflict{{Preset: &inject.Preset{Name: "p"}, Reasons: []string{"R"}}}
	refuse := func(many int) {
		for i := 0; i < many; i++ {
			p.events.add(namespace, fmt.Sprint("refused-", i), "x", conflicts)
		}
	}
	pending := func(when string, want int) {
		t.Helper()
		if n := int(p.events.pending.Load()); n != want {
			t.Fatalf("%s %d pods are waited for, want %d", when, n, want)
		}
	}
	refuse(maxPending + 10)
	pending("before the first look", maxPending)
	if len(timers.waiting) != maxPending {
		t.Errorf("%d pods will be looked for", len(timers.waiting))
	}
	timers.pass(eventDelay)
	pending("after it", maxPending/2)
	if err := client.Tracker().Add(stored("u")); err != nil {
		t.Fatal(err)
	}
	p.events.add(namespace, "website", "u", conflicts)
	timers.pass(eventDelay)
	if events := awaitEvents(client, 1); len(events) != 1 {
		t.Errorf("%d events, want that of the pod which was stored", len(events))
	}
}

func TestNothingIsRaisedAfterTheEnd(t *testing.T) {
	client := fake.NewSimpleClientset(stored("u"))
	ended := make(chan struct{})
	close(ended)
	p := NewPlugin()
	p.SetDrainedNotification(ended)
	p.SetExternalKubeClientSet(client)
	timers := timersOf(p)
	p.events.add(namespace, "website", "u", []inject.Conflict{{Preset: &inject.Preset{Name: "p"}, Reasons: []string{"R"}}})
	timers.pass(eventDelay) // and it is not looked for again
	if len(client.Actions()) > 0 || p.events.pending.Load() != 0 {
		t.Errorf("%v, %d pods are waited for", client.Actions(), p.events.pending.Load())
	}
}

// TestConflictsAreForgottenWithTheRequest has a pod that is refused after it was injected into.
func TestConflictsAreForgottenWithTheRequest(t *testing.T) {
	p, _ := newPlugin(t, true, database())
	known := func() (n int) {
		p.found.Range(func(_, _ any) bool { n++; return true })
		return n
	}
	pod := website()
	pod.Spec.Containers[0].Env = []api.EnvVar{{Name: "DB_PORT", Value: "1"}}
	create(t, p, website(), false)                              // without a conflict
	admitIn(t, context.Background(), p, attributes(pod, false)) // of no request
	if known() != 0 {
		t.Fatalf("conflicts of %d requests are kept, want none", known())
	}
	ctx, cancel := context.WithCancel(request(t))
	admitIn(t, ctx, p, attributes(pod, false))
	if known() != 1 {
		t.Fatalf("conflicts of %d requests are kept, want 1", known())
	}
	forgotten := func() {
		t.Helper()
		if err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			return known() == 0, nil
		}); err != nil {
			t.Error("conflicts of a request that has ended are kept")
		}
	}
	cancel()
	forgotten()

	// A request ends while it is admitted again, and what it had is deleted before more is kept.
	info, _ := genericapirequest.RequestInfoFrom(ctx)
	p.found.Store(info, []inject.Conflict{})
	p.note(ctx, []inject.Conflict{{Preset: &inject.Preset{Name: "p"}, Reasons: []string{"R"}}})
	forgotten()
}

// reinvocation is what the API server keeps between two passes of one request.
type reinvocation struct {
	admission.Attributes
	values map[string]interface{}
	again  bool
}

func (r *reinvocation) GetReinvocationContext() admission.ReinvocationContext { return r }
func (r *reinvocation) IsReinvoke() bool                                      { return r.again }
func (r *reinvocation) SetIsReinvoke()                                        { r.again = true }
func (r *reinvocation) ShouldReinvoke() bool                                  { return true }
func (r *reinvocation) SetShouldReinvoke()                                    {}
func (r *reinvocation) SetValue(plugin string, v interface{})                 { r.values[plugin] = v }
func (r *reinvocation) Value(plugin string) interface{}                       { return r.values[plugin] }

func TestReinvocationIsNotInConflictWithItself(t *testing.T) {
	p, _ := newPlugin(t, true, database())
	pod := website()
	a := &reinvocation{Attributes: attributes(pod, false), values: map[string]interface{}{}}
	admit(t, p, a)
	// A webhook overwrites a value, takes the label away, and adds a container.
	pod.Labels = nil
	pod.Spec.Containers[0].Env[0].Value = "1"
	pod.Spec.Containers = append(pod.Spec.Containers, api.Container{Name: "proxy"})
	a.SetIsReinvoke()
	said := admit(t, p, a)
	if len(said) > 0 {
		t.Errorf("warnings: %q", said)
	}
	if got := pod.Spec.Containers[0].Env; len(got) != 1 || got[0].Value != "1" {
		t.Errorf("the first container has %v, want the webhook's value", got)
	}
	if got := pod.Spec.Containers[1].Env; len(got) != 1 || got[0].Value != "6379" {
		t.Errorf("the new container has %v, want the preset's", got)
	}
}

// TestSidecarInConflict has a webhook that adds a container which the preset is in conflict with:
// the pod has the preset, and is told that the container has not.
func TestSidecarInConflict(t *testing.T) {
	other := database()
	other.Name, other.UID, other.Spec.Env[0].Value = "other", "2", "1" // in conflict with the first
	p, client := newPlugin(t, true, database(), other, stored("u"))
	pod, ctx := website(), request(t)
	a := &reinvocation{Attributes: attributes(pod, false), values: map[string]interface{}{}}
	if said := admitIn(t, ctx, p, a); len(said) != 1 || !strings.Contains(said[0], "PodPreset other is not injected:") {
		t.Fatalf("warnings: %q", said)
	}
	pod.Spec.Containers = append(pod.Spec.Containers, api.Container{Name: "proxy", Env: []api.EnvVar{{Name: "DB_PORT", Value: "1"}}})
	a.SetIsReinvoke()
	if said := admitIn(t, ctx, p, a); len(said) != 1 || !strings.Contains(said[0], "allow-database is not injected into all containers: Conflict on pod preset. Container proxy gets nothing of it. Duplicate env DB_PORT.") {
		t.Errorf("warnings: %q", said)
	}
	if len(pod.Spec.Containers[0].VolumeMounts) != 1 || len(pod.Spec.Containers[1].VolumeMounts) != 0 {
		t.Errorf("containers %v: want the preset in the first alone", pod.Spec.Containers)
	}
	timers := timersOf(p)
	validate(t, ctx, p, pod, false)
	timers.pass(eventDelay)
	var of []string
	for _, event := range awaitEvents(client, 2) {
		of = append(of, event.Source.Component+": "+event.Message)
	}
	sort.Strings(of)
	const start, message, reason = "podpreset.admission.kubernetes.io/", ": Conflict on pod preset. ", "Duplicate env DB_PORT."
	if want := []string{start + "allow-database" + message + "Container proxy gets nothing of it. " + reason, start + "other" + message + reason}; !reflect.DeepEqual(of, want) {
		t.Errorf("events: %q, want %q, of both passes", of, want)
	}
}

// TestPresetWithASelectorThatNobodyUnderstands was stored by another release.
func TestPresetWithASelectorThatNobodyUnderstands(t *testing.T) {
	preset := database()
	preset.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "role", Operator: "New"}}
	p, _ := newPlugin(t, true, preset)
	pod := website()
	if said := admit(t, p, attributes(pod, false)); len(said) > 0 || len(pod.Spec.Volumes) > 0 {
		t.Errorf("warnings %q, volumes %v: want a preset that matches no pod", said, pod.Spec.Volumes)
	}
}

func TestPresetThatGatesMadeInvalidIsInConflict(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, false)
	preset := database()
	preset.Spec.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "cache-volume", Path: "f", Key: "A"}}}}
	p, _ := newPlugin(t, true, preset)
	pod := website()
	said := admit(t, p, attributes(pod, false))
	if len(said) != 1 || !strings.Contains(said[0], "spec.env[0].valueFrom") || len(pod.Spec.Volumes) > 0 {
		t.Errorf("warnings %q, volumes %v: want the field that the gate takes away, and nothing injected", said, pod.Spec.Volumes)
	}
}

// TestWarningsOfAPresetThatNoPodGets is here, as the plugin says that it injects.
func TestWarningsOfAPresetThatNoPodGets(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, true)
	podpresetutil.Injecting.Store(false)
	preset := &settings.PodPreset{Spec: settings.PodPresetSpec{
		Env: []api.EnvVar{
			{Name: "A", ValueFrom: &api.EnvVarSource{FileKeyRef: &api.FileKeySelector{VolumeName: "of-the-pod", Path: "f", Key: "A"}}},
			{Name: "B", ValueFrom: &api.EnvVarSource{FileKeyRef: &api.FileKeySelector{VolumeName: "own", Path: "f", Key: "B"}}},
		},
		VolumeMounts: []api.VolumeMount{{Name: "own", MountPath: "/own"}},
	}}
	warn := func() string {
		return strings.Join(podpresetstrategy.Strategy.WarningsOnCreate(context.Background(), preset), "\n")
	}
	const off = "no pod gets this preset: the admission plugin PodPreset is off"
	if got := warn(); !strings.Contains(got, off) || !strings.Contains(got, "spec.env[1].valueFrom.fileKeyRef.volumeName: ") || strings.Contains(got, "env[0]") {
		t.Errorf("without the plugin: %q", got)
	}
	newPlugin(t, true, database())
	if got := warn(); strings.Contains(got, off) {
		t.Errorf("with the plugin: %q", got)
	}
	preset.Spec.Env = preset.Spec.Env[:1]
	if got := warn(); got != "" {
		t.Errorf("a preset that pods get: %q", got)
	}
}

// TestGateOffKeepsAStoredFileKeyRef has a preset that was stored while EnvFiles was on.
func TestGateOffKeepsAStoredFileKeyRef(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, false)
	old := &settings.PodPreset{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace, ResourceVersion: "1"}, Spec: settings.PodPresetSpec{
		Env: []api.EnvVar{{Name: "A", ValueFrom: &api.EnvVarSource{FileKeyRef: &api.FileKeySelector{VolumeName: "v", Path: "f", Key: "A"}}}},
	}}
	changed := old.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	podpresetstrategy.Strategy.PrepareForUpdate(context.Background(), changed, old)
	if errs := podpresetstrategy.Strategy.ValidateUpdate(context.Background(), changed, old); len(errs) > 0 {
		t.Errorf("a label cannot be changed: %v", errs)
	}
	changed.Spec.Env[0].Name = "B"
	if errs := podpresetstrategy.Strategy.ValidateUpdate(context.Background(), changed, old); len(errs) == 0 {
		t.Error("the spec can be changed")
	}
	podpresetstrategy.Strategy.PrepareForCreate(context.Background(), changed)
	if changed.Spec.Env[0].ValueFrom.FileKeyRef != nil {
		t.Error("a new preset has the field")
	}
}

// TestPresetsAreFollowed has a preset that is changed, which no API server does but one without validation, and
// deleted.
func TestPresetsAreFollowed(t *testing.T) {
	preset := database()
	p, client := newPlugin(t, true, preset)
	presets := client.SettingsV1alpha1().PodPresets(namespace)
	for _, step := range []struct {
		what   string
		change func(context.Context) error
		want   string
	}{
		{"changed", func(ctx context.Context) error {
			preset.Spec.Env[0].Value = "1"
			_, err := presets.Update(ctx, preset, metav1.UpdateOptions{}) // again at each try: a fake watch may begin late
			return err
		}, "1"},
		{"deleted", func(ctx context.Context) error { return presets.Delete(ctx, preset.Name, metav1.DeleteOptions{}) }, ""},
	} {
		var got string
		_ = wait.PollUntilContextTimeout(context.Background(), time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
			if err := step.change(ctx); err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
			pod := website()
			admit(t, p, attributes(pod, false))
			got = ""
			if env := pod.Spec.Containers[0].Env; len(env) > 0 {
				got = env[0].Value
			}
			return got == step.want, nil
		})
		if got != step.want {
			t.Errorf("after the preset was %s, DB_PORT is %q, want %q", step.what, got, step.want)
		}
	}
}

func TestReasonOfAnInvalidPresetHasEachFieldOnce(t *testing.T) {
	object := database()
	object.Spec.Volumes = append(object.Spec.Volumes, v1.Volume{Name: "Not_Mounted"}) // two errors about its name
	const fields = "spec.volumes[1].name"
	if got := prepare(object).Broken; strings.Count(got, fields) != 1 {
		t.Errorf("the reason is %q, want %s once", got, fields)
	}
}

func TestReasonOfAnInvalidPresetIsBounded(t *testing.T) {
	object := database()
	object.Spec.Env = nil
	for i := 0; i < 12; i++ {
		object.Spec.Env = append(object.Spec.Env, v1.EnvVar{Name: "A=B"})
	}
	const start = "The preset is not valid with the feature gates of this API server: spec.env[0].name, spec.env[1].name, "
	if got := prepare(object).Broken; !strings.HasPrefix(got, start) || !strings.HasSuffix(got, ", spec.env[9].name") {
		t.Errorf("the reason is %q", got)
	}
}

// TestPathTwiceInAStoredPresetIsAConflict has a preset of before the validation refused it.
func TestPathTwiceInAStoredPresetIsAConflict(t *testing.T) {
	object := database()
	object.Spec.VolumeMounts = append(object.Spec.VolumeMounts, v1.VolumeMount{Name: "cache-volume", MountPath: "/cache/"})
	if got := prepare(object).Broken; !strings.HasSuffix(got, ": spec.volumeMounts[1].mountPath") {
		t.Errorf("the reason is %q, want one with the second mount", got)
	}
}

// TestTheInformersObjectStaysAsItIs is why a preset is copied: others read the object too.
func TestTheInformersObjectStaysAsItIs(t *testing.T) {
	featurestest.SetGate(t, features.EnvFiles, false)
	object := database()
	object.Spec.Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "cache-volume", Path: "f", Key: "A"}}}}
	before := object.DeepCopy()
	prepare(object)
	if !reflect.DeepEqual(object, before) {
		t.Errorf("it is %v, want %v", object.Spec, before.Spec)
	}
}

func TestPresetsOfANamespaceAreOrderedByAge(t *testing.T) {
	c := &presetCache{namespaces: map[string][]*inject.Preset{}}
	for i, name := range []string{"c", "a", "d", "b", "a"} {
		preset := database()
		preset.Name, preset.CreationTimestamp = name, metav1.Unix(int64(10-i), 0)
		c.set(preset)
	}
	c.remove(namespace, "d")
	deleted := database()
	deleted.Name, deleted.DeletionTimestamp = "e", &metav1.Time{}
	c.set(&settingsv1alpha1.PodPreset{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: namespace}})
	c.set(deleted)
	var names []string
	for _, preset := range c.in(namespace) {
		names = append(names, preset.Name)
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("the order is %q, want the oldest first", got)
	}
	for i, name := range names {
		c.remove(namespace, name)
		if left := len(c.in(namespace)); left != len(names)-i-1 {
			t.Errorf("%d presets are left without %q", left, names[:i+1])
		}
	}
	if len(c.namespaces) > 0 {
		t.Error("a namespace without presets is remembered")
	}
}

// TestDefaultsAreThoseOfPods: what a preset leaves out gets the default that it has in a pod.
func TestDefaultsAreThoseOfPods(t *testing.T) {
	env := []v1.EnvVar{{Name: "NODE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	volumes := []v1.Volume{
		{Name: "none"},
		{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s"}}},
		{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}}}}}},
		{Name: "disk", VolumeSource: v1.VolumeSource{RBD: &v1.RBDVolumeSource{}}},
	}
	preset := (&settingsv1alpha1.PodPreset{Spec: settingsv1alpha1.PodPresetSpec{Env: env, Volumes: volumes}}).DeepCopy()
	pod := (&v1.Pod{Spec: v1.PodSpec{Volumes: volumes, Containers: []v1.Container{{Env: env}}}}).DeepCopy()
	legacyscheme.Scheme.Default(preset)
	legacyscheme.Scheme.Default(pod)
	if got, want := preset.Spec.Env, pod.Spec.Containers[0].Env; !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults make variables of a preset %+v, want %+v, as of a pod", got, want)
	}
	if got, want := preset.Spec.Volumes, pod.Spec.Volumes; !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults make volumes of a preset %+v, want %+v, as of a pod", got, want)
	}
}

// TestNamespaceWithoutPresetsAllocatesNothing is what pods pay that have no presets.
func TestNamespaceWithoutPresetsAllocatesNothing(t *testing.T) {
	p, _ := newPlugin(t, true, database())
	pod := website()
	pod.Namespace = "other"
	a := attributes(pod, false)
	ctx := context.Background()
	if err := p.Admit(ctx, a, nil); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = p.Admit(ctx, a, nil) }); n > 0 {
		t.Errorf("%v allocations per pod, want none", n)
	}
}

// BenchmarkAdmission is what the plugin adds to the creation of a pod, in both of its phases.
func BenchmarkAdmission(b *testing.B) {
	b.Run("no_presets", func(b *testing.B) {
		elsewhere := database()
		elsewhere.Namespace = "other"
		benchmarkAdmission(b, 0, elsewhere)
	})
	b.Run("3_of_100_presets_match", func(b *testing.B) {
		var presets []runtime.Object
		for i := 0; i < 100; i++ {
			preset := database()
			preset.Name, preset.UID = fmt.Sprintf("preset-%d", i), types.UID(fmt.Sprint(i))
			if i >= 3 {
				preset.Spec.Selector.MatchLabels["role"] = fmt.Sprint(i)
			}
			preset.Spec.Env[0].Name = fmt.Sprintf("VAR_%d", i)
			preset.Spec.Volumes[0].Name = fmt.Sprintf("volume-%d", i)
			preset.Spec.VolumeMounts[0] = v1.VolumeMount{Name: preset.Spec.Volumes[0].Name, MountPath: fmt.Sprintf("/path/%d", i)}
			presets = append(presets, preset)
		}
		benchmarkAdmission(b, 3, presets...)
	})
}

// firstPass forgets what an earlier admission has injected, so that it serves for many pods.
type firstPass struct{ reinvocation }

func (*firstPass) SetValue(string, interface{}) {}

func (f *firstPass) GetReinvocationContext() admission.ReinvocationContext { return f }

// benchmarkAdmission creates pods that get a volume of each of so many presets.
func benchmarkAdmission(b *testing.B, matching int, presets ...runtime.Object) {
	p, _ := newPlugin(b, true, presets...)
	ctx := request(b)
	original, pod := website(), website()
	container := original.Spec.Containers[0]
	a := &firstPass{reinvocation{Attributes: attributes(pod, false)}}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		*pod = *original
		pod.Spec.Containers[0] = container // the plugin changes it in place
		if err := p.Admit(ctx, a, nil); err != nil {
			b.Fatal(err)
		}
		if err := p.Validate(ctx, a, nil); err != nil {
			b.Fatal(err)
		}
		if len(pod.Spec.Volumes) != matching {
			b.Fatalf("%d volumes, want %d", len(pod.Spec.Volumes), matching)
		}
	}
}
