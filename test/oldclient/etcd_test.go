package oldclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
)

var (
	etcdURL = flag.String("etcd", "", "URL of the cluster's etcd; TestEtcd is skipped if it is empty")
	etcdPKI = flag.String("etcd-pki", "", "folder with certificates for etcd, as kubeadm's /etc/kubernetes/pki/etcd")
)

// TestEtcd has the types of v1.19 read what the API server has stored, and the API server
// read and store again what an API server of v1.19 would have stored.
func TestEtcd(t *testing.T) {
	if *etcdURL == "" {
		t.Skip("without -etcd")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	scheme := runtime.NewScheme()
	if err := settingsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codec := protobuf.NewSerializer(scheme, scheme)
	encode := func(preset runtime.Object) []byte {
		var b bytes.Buffer
		if err := codec.Encode(preset, &b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	store := newStore(t)

	for name, contentType := range contentTypes {
		t.Run("what the API server stores of "+name, func(t *testing.T) {
			presets := newClient(t, contentType).SettingsV1alpha1().PodPresets(*namespace)
			made := database("old-client-stored-" + name)
			if _, err := presets.Create(ctx, made, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { deletePreset(t, presets, made.Name) })
			stored := store.get(t, made.Name)
			object, _, err := codec.Decode(stored, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := object.(*settingsv1alpha1.PodPreset); got.Name != made.Name || !equality.Semantic.DeepEqual(got.Spec, made.Spec) {
				t.Errorf("etcd has %+v, want %+v", got, made)
			}
			if !bytes.Equal(withoutMetadata(t, encode(object)), withoutMetadata(t, stored)) {
				t.Error("the types of v1.19 give other bytes than those in etcd")
			}
		})
	}

	t.Run("what v1.19 has stored", func(t *testing.T) {
		presets := newClient(t, runtime.ContentTypeProtobuf).SettingsV1alpha1().PodPresets(*namespace)
		old := database("old-client-stored-by-v1.19")
		old.TypeMeta = metav1.TypeMeta{APIVersion: settingsv1alpha1.SchemeGroupVersion.String(), Kind: "PodPreset"}
		old.Namespace, old.UID, old.CreationTimestamp = *namespace, "3e8b8bb4-0d0c-4b8c-b0bd-6f7a4f9a1d0e", metav1.Unix(1_600_000_000, 0)
		stored := encode(old)
		store.put(t, old.Name, stored)
		t.Cleanup(func() { deletePreset(t, presets, old.Name) })
		got, err := presets.Get(ctx, old.Name, metav1.GetOptions{})
		if err != nil || got.UID != old.UID || !equality.Semantic.DeepEqual(got.Spec, old.Spec) {
			t.Fatalf("get: %v, %+v, want %+v", err, got, old)
		}
		if _, err := presets.Patch(ctx, old.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"patched":"yes"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		now := store.get(t, old.Name)
		if bytes.Equal(now, stored) {
			t.Error("the API server has not stored the preset again")
		}
		if !bytes.Equal(withoutMetadata(t, now), withoutMetadata(t, stored)) {
			t.Error("the API server stores other bytes than v1.19")
		}
	})
}

// withoutMetadata returns what is stored of a preset but for its metadata, to which Kubernetes
// has added fields, and has removed some.
func withoutMetadata(t *testing.T, stored []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(stored, []byte(magic)) {
		t.Fatalf("it is not stored as protobuf: %q", stored)
	}
	return without(t, stored[len(magic):], []protowire.Number{2, 1})
}

// store is an etcd, which answers JSON too.
type store struct{ http.Client }

func newStore(t *testing.T) *store {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(*etcdPKI, "healthcheck-client.crt"), filepath.Join(*etcdPKI, "healthcheck-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(*etcdPKI, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots}
	return &store{http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}}
}

// keyValue is an entry; JSON has its bytes in base64.
type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

func (s *store) get(t *testing.T, name string) []byte {
	t.Helper()
	var answer struct{ KVs []keyValue }
	if s.do(t, "range", name, nil, &answer); len(answer.KVs) != 1 {
		t.Fatalf("etcd has %d presets called %s, want one", len(answer.KVs), name)
	}
	return answer.KVs[0].Value
}

func (s *store) put(t *testing.T, name string, value []byte) {
	t.Helper()
	s.do(t, "put", name, value, &struct{}{})
}

func (s *store) do(t *testing.T, verb, name string, value []byte, answer interface{}) {
	t.Helper()
	body, err := json.Marshal(keyValue{[]byte("/registry/podpresets/" + *namespace + "/" + name), value})
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.Post(*etcdURL+"/v3/kv/"+verb, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("etcd answers %s: %v: %s", response.Status, err, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatal(err)
	}
}
