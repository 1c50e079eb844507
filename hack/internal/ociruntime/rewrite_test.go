package ociruntime

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bounded has all capabilities but CAP_SYS_RESOURCE.
const bounded = Set(0x1fffeffffff)

// process asks for what the bounding set lacks in all five sets, and has members
// that a round trip through Go's types would change: a number beyond 64 bits, one
// with a fraction of no value, characters that encoding/json likes to escape, and
// members of a future specification.
const process = `{
  "terminal": true,
  "user": {"uid": 0, "gid": 0, "additionalGids": [0, 10]},
  "args": ["sh", "-c", "a && b > c < d", "\u2028 é \ud83d\ude00"],
  "env": ["CAP_SYS_RESOURCE=CAP_SYS_RESOURCE", "X=<&>"],
  "capabilities": {
    "bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_SYS_ADMIN"],
    "effective": ["CAP_SYS_RESOURCE", "CAP_CHOWN"],
    "inheritable": ["CAP_SYS_RESOURCE"],
    "permitted": ["CAP_CHOWN", "CAP_SYS_RESOURCE"],
    "ambient": ["CAP_SYS_RESOURCE", "CAP_KILL"],
    "future": ["CAP_SYS_RESOURCE", "CAP_KILL"]
  },
  "noNewPrivileges": false,
  "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 18446744073709551615, "soft": 184467440737095516150}],
  "oomScoreAdj": -999,
  "fromTheFuture": {"CAP_SYS_RESOURCE": [1.0, 1e400, null]}
}`

const wantSets = `{
  "bounding": ["CAP_CHOWN", "CAP_SYS_ADMIN"],
  "effective": ["CAP_CHOWN"],
  "inheritable": [],
  "permitted": ["CAP_CHOWN"],
  "ambient": ["CAP_KILL"],
  "future": ["CAP_KILL"]
}`

// config is a bundle's config.json around process.
var config = `{"ociVersion": "1.0.2-dev", "process": ` + process + `,
  "root": {"path": "/rootfs"},
  "annotations": {"a": "CAP_SYS_RESOURCE <&>"},
  "linux": {"seccomp": {"syscalls": [{"names": ["x"], "args": [{"value": 18446744073709551615}]}]}, "y": 1.50}}`

func TestBoundProcessTakesTheMissingCapabilityOutOfEverySet(t *testing.T) {
	got, err := BoundProcess([]byte(process), bounded)
	if err != nil {
		t.Fatal(err)
	}
	diffMembers(t, []byte(process), got, "capabilities", wantSets)
}

func TestBoundConfigChangesNothingButTheCapabilities(t *testing.T) {
	got, err := BoundConfig([]byte(config), bounded)
	if err != nil {
		t.Fatal(err)
	}
	changed := members(t, got)["process"]
	diffMembers(t, []byte(config), got, "process", changed)
	diffMembers(t, []byte(process), []byte(changed), "capabilities", wantSets)
}

func TestBoundLeavesAFileAsItIs(t *testing.T) {
	for name, test := range map[string]struct {
		data  string
		bound func([]byte, Set) ([]byte, error)
		set   Set
	}{
		"on a full host":                         {config, BoundConfig, 0x1ffffffffff},
		"that asks for what there is":            {` {"process": {"capabilities": {"bounding": ["CAP_KILL"]}}} `, BoundConfig, bounded},
		"without a process":                      {`{ "linux" : {} }`, BoundConfig, bounded},
		"without capabilities":                   {`{"process" : {"cwd": "/"}}`, BoundConfig, bounded},
		"with capabilities that are null":        {`{"process" : {"capabilities": null}}`, BoundConfig, bounded},
		"with a set that is null":                {`{"capabilities": {"ambient" : null}}`, BoundProcess, bounded},
		"that is the process of a full host":     {process, BoundProcess, 0x1ffffffffff},
		"that is a process without capabilities": {`{"args" : ["CAP_SYS_RESOURCE"]}`, BoundProcess, bounded},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.bound([]byte(test.data), test.set)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.data {
				t.Errorf("changed to %s", got)
			}
		})
	}
}

func TestBoundSaysWhatItCannotRead(t *testing.T) {
	for name, test := range map[string]struct{ data, want string }{
		"text":                            {`nonsense`, "invalid character"},
		"half a file":                     {`{"process": {`, "unexpected end"},
		"a list in place of the process":  {`{"process": []}`, "process: "},
		"a list in place of capabilities": {`{"process": {"capabilities": []}}`, "process: capabilities: "},
		"numbers as capabilities":         {`{"process": {"capabilities": {"ambient": [24]}}}`, "capabilities: ambient: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := BoundConfig([]byte(test.data), bounded); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestRequestIsBoundInItsFile(t *testing.T) {
	for name, test := range map[string]struct {
		file, data string
		request    func(path string) Request
	}{
		"config.json of create": {"config.json", config, func(path string) Request { return Request{Config: path} }},
		"process.json of exec":  {"process.json", process, func(path string) Request { return Request{Process: path} }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), test.file)
			if err := os.WriteFile(path, []byte(test.data), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := test.request(path).Bound(bounded); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(data) || bytes.Contains(data, []byte(`"CAP_SYS_RESOURCE",`)) {
				t.Errorf("%s became %s", test.file, data)
			}
			stat, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if stat.Mode() != 0o640 {
				t.Errorf("mode became %v, want 0640", stat.Mode())
			}
		})
	}
}

func TestRequestWithoutItsFileFails(t *testing.T) {
	if err := (Request{Config: filepath.Join(t.TempDir(), "config.json")}).Bound(bounded); !os.IsNotExist(err) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

// members are the members of a JSON object, without white space.
func members(t testing.TB, data []byte) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	all := map[string]string{}
	for name, value := range raw {
		all[name] = compact(t, value)
	}
	return all
}

func compact(t testing.TB, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// diffMembers fails unless got is before with but one member changed, to want.
func diffMembers(t testing.TB, before, got []byte, changed, want string) {
	t.Helper()
	expected := members(t, before)
	expected[changed] = compact(t, []byte(want))
	actual := members(t, got)
	if sets := actual[changed]; changed == "capabilities" {
		// The order of the sets means nothing.
		if diff := cmp.Diff(members(t, []byte(want)), members(t, []byte(sets))); diff != "" {
			t.Errorf("capabilities (-want +got):\n%s", diff)
		}
		delete(expected, changed)
		delete(actual, changed)
	}
	if diff := cmp.Diff(expected, actual); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}
