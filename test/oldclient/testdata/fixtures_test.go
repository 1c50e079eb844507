// It is compiled as a part of the package in the tree, whose types it holds to the fixtures of
// k8s.io/api v0.19.16.
package v1alpha1

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func TestFixturesOfV119(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("PODPRESET_FIXTURES"), "*.PodPreset.*"))
	if err != nil || len(files) != 9 {
		t.Fatalf("%d fixtures (%v), want 9: three versions in three encodings", len(files), err)
	}
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(o serializer.SerializerOptions) runtime.Serializer {
		return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, o)
	}
	encodings := map[string]runtime.Serializer{
		".json": of(serializer.SerializerOptions{Pretty: true}),
		".yaml": of(serializer.SerializerOptions{Yaml: true}),
		".pb":   protobuf.NewSerializer(scheme, scheme),
	}
	for _, file := range files {
		t.Run(strings.ReplaceAll(filepath.Base(file), ".settings.k8s.io.v1alpha1", ""), func(t *testing.T) {
			fixture, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			encoding := encodings[filepath.Ext(file)]
			object, _, err := encoding.Decode(fixture, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var again bytes.Buffer
			if err := encoding.Encode(object, &again); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again.Bytes(), fixture) {
				t.Errorf("got %d bytes\n%s\nwant %d\n%s", again.Len(), &again, len(fixture), fixture)
			}
		})
	}
}
