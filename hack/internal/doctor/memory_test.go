package doctor

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestMemory(t *testing.T) {
	meminfo := func(kib int) map[string]string {
		return map[string]string{"meminfo": fmt.Sprintf("MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable:   %d kB\nBuffers: 5 kB\n", kib)}
	}
	for name, test := range map[string]struct {
		files                 map[string]string
		status, found, remedy string
	}{
		"is enough":            {meminfo(6 << 20), OK, "6.0 GiB available", ""},
		"is enough for one":    {meminfo(6<<20 - 1), Warn, "GiB available", "GOFLAGS=-p=1"},
		"is too little":        {meminfo(3<<20 - 1), Fail, "GiB available", "3 GiB"},
		"is not known":         {map[string]string{"meminfo": "MemTotal: 1 kB\n"}, Warn, "does not say", "GiB"},
		"is in nobody's words": {map[string]string{"meminfo": "MemAvailable: much kB\n"}, Warn, "does not say", "GiB"},
		"is not mounted":       {nil, Fail, "no such file", "/proc"},
	} {
		t.Run(name, func(t *testing.T) {
			memory(filepath.Join(files(t, test.files), "meminfo")).want(t, test.status, test.found, test.remedy)
		})
	}
}
