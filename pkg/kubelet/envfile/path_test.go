package envfile

import "testing"

func TestCleanPath(t *testing.T) {
	for path, want := range map[string]string{
		"a.env":                "a.env",
		"./a.env":              "a.env",
		".//././a.env":         "a.env",
		"d/./e//a.env":         "d/e/a.env",
		"..data/a.env":         "..data/a.env",
		"./..data/a.env":       "..data/a.env",
		"/a.env":               "/a.env",
		"//./a.env":            "/a.env",
		"":                     "",
		"a.env/":               "a.env/",
		"./a.env/.":            "./a.env/.",
		"d/../a.env":           "d/../a.env",
		"./d/..":               "./d/..",
		"../" + "a.env":        "../a.env",
		"d/.hidden/..a/b..env": "d/.hidden/..a/b..env",
	} {
		if got := CleanPath(path); got != want {
			t.Errorf("%q: want %q, got %q", path, want, got)
		}
	}
}
