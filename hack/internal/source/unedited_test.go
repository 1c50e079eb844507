package source

import (
	"errors"
	"os"
	"testing"
)

func TestCheckUneditedKeepsEditsOfASeriesThatIsGone(t *testing.T) {
	for _, edit := range edits {
		t.Run(edit.name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			if err := os.RemoveAll(w.series.Dir); err != nil {
				t.Fatal(err)
			}
			if err := CheckUnedited(t.Context(), w.layout, w.series, false); err != nil {
				t.Fatalf("error %v of an unedited tree", err)
			}
			edit.do(w)
			if err := CheckUnedited(t.Context(), w.layout, w.series, false); !errors.Is(err, ErrEdited) {
				t.Errorf("error %v, want ErrEdited", err)
			}
		})
	}
}
