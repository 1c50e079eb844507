package oldclient

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

var out = flag.String("out", "", "folder for the fixtures as a Kubernetes of today can have them; none if empty")

// TestFixtures reads the PodPresets that k8s.io/api of v1.19 keeps, each in three encodings,
// and writes them anew: without metadata.clusterName and the readOnly of an ephemeral volume,
// which Kubernetes has removed since, and in protobuf without metadata.managedFields, to which
// it has added a field that is written even if it is empty. The types of today are held to
// what it writes.
func TestFixtures(t *testing.T) {
	text, err := exec.Command("go", "list", "-m", "-json", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	var api struct{ Dir string }
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := settingsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(o serializer.SerializerOptions) runtime.Serializer {
		return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, o)
	}
	encodings := map[string]runtime.Serializer{
		"json": of(serializer.SerializerOptions{Pretty: true}),
		"yaml": of(serializer.SerializerOptions{Yaml: true}),
		"pb":   protobuf.NewSerializer(scheme, scheme),
	}
	created := metav1.NewTime(time.Unix(1_600_000_000, 0))
	for _, version := range []string{"HEAD", "v1.18.0", "v1.17.0"} {
		for extension, encoding := range encodings {
			name := "settings.k8s.io.v1alpha1.PodPreset." + extension
			t.Run(version+"/"+extension, func(t *testing.T) {
				fixture, err := os.ReadFile(filepath.Join(api.Dir, "testdata", version, name))
				if err != nil {
					t.Fatal(err)
				}
				object, _, err := encoding.Decode(fixture, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				preset := object.(*settingsv1alpha1.PodPreset)
				encode := func() []byte {
					var b bytes.Buffer
					if err := encoding.Encode(preset, &b); err != nil {
						t.Fatal(err)
					}
					return b.Bytes()
				}
				if version == "HEAD" && !bytes.Equal(encode(), fixture) {
					t.Error("the types of v1.19 themselves give other bytes")
				}
				preset.ClusterName, preset.CreationTimestamp = "", created
				for _, volume := range preset.Spec.Volumes {
					if ephemeral := volume.Ephemeral; ephemeral != nil {
						ephemeral.ReadOnly = false
						ephemeral.VolumeClaimTemplate.ClusterName, ephemeral.VolumeClaimTemplate.CreationTimestamp = "", created
						if extension == "pb" {
							ephemeral.VolumeClaimTemplate.ManagedFields = nil
						}
					}
				}
				if extension == "pb" {
					preset.ManagedFields = nil
				}
				if *out == "" {
					return
				}
				text := encode()
				if extension == "pb" {
					for _, path := range removed {
						text = append(text[:len(magic):len(magic)], without(t, text[len(magic):], path)...)
					}
				}
				if err := os.WriteFile(filepath.Join(*out, version+"."+name), text, 0o644); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// magic is what objects in protobuf begin with; behind it is a runtime.Unknown.
const magic = "k8s\x00"

// removed are the fields that Kubernetes has removed, by the numbers on the way to them: in
// protobuf they are there even if they are empty. The first 2 is the object in the
// runtime.Unknown, and 2, 4, 2, 29 is the ephemeral source of a volume of the spec.
var removed = [][]protowire.Number{{2, 1, 15}, {2, 2, 4, 2, 29, 2}, {2, 2, 4, 2, 29, 1, 1, 15}}

// without returns a message without the field at the end of path.
func without(t *testing.T, message []byte, path []protowire.Number) []byte {
	var left []byte
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		field := message[:n+size]
		message = message[n+size:]
		switch {
		case number != path[0]:
			left = append(left, field...)
		case len(path) > 1:
			inner, _ := protowire.ConsumeBytes(field[n:])
			left = protowire.AppendTag(left, number, kind)
			left = protowire.AppendBytes(left, without(t, inner, path[1:]))
		}
	}
	return left
}
