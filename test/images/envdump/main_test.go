package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDump(t *testing.T) {
	for name, env := range map[string][]string{
		"no variable":                          {},
		"values keep every byte":               {"A=b", "EMPTY=", `Q="'$x'"`, "HTML=<a&b>", "LINES=a\nb\r\n", "UTF=ä€"},
		"the order and a double are as given":  {"Z=1", "A=1", "Z=2"},
		"an entry without an equals sign":      {"ODD"},
		"an entry with an equals sign in both": {"=C:=x=y"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), nil, env, &out); err != nil {
				t.Fatal(err)
			}
			var got struct{ Env []string }
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%q is not JSON: %v", out.String(), err)
			}
			if got.Env == nil || !slices.Equal(got.Env, env) {
				t.Errorf("got %q, want %q", got.Env, env)
			}
			if strings.Count(out.String(), "\n") != 1 {
				t.Errorf("want one line, got %q", out.String())
			}
		})
	}
}

func TestDumpRefusesWhatJSONCannotCarry(t *testing.T) {
	err := run(t.Context(), nil, []string{"BAD=\xff"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "BAD") {
		t.Errorf("want an error that names BAD, got %v", err)
	}
}

func TestUnknownArguments(t *testing.T) {
	for _, args := range [][]string{{"sevre"}, {"serve", ":1", "more"}} {
		if err := run(t.Context(), args, nil, io.Discard); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}

func TestServeAnswersUntilItsContextEnds(t *testing.T) {
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"serve", address}, []string{"A=b"}, io.Discard) }()

	if got, want := get(t, "http://"+address), `{"env":["A=b"]}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("still serving 10s after its context ended")
	}
}

func TestOverwriteMappedLeavesOneState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.env")
	states := []string{strings.Repeat("K=a\n", 1000), strings.Repeat("K=b\n", 1000)}
	if err := os.WriteFile(file, []byte(states[0]), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"overwrite-mapped", file}, nil, io.Discard) }()
	for deadline := time.Now().Add(10 * time.Second); ; {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != states[0] {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the file has not changed in 10s")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !slices.Contains(states, string(text)) {
		t.Errorf("ended with a mix: %q, %v", text, err)
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// get polls url until it answers or ten seconds are over.
func get(t testing.TB, url string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		response, err := http.Get(url)
		if err != nil {
			if time.Now().After(deadline) {
				t.Fatalf("waiting for an answer: %v", err)
			}
			continue
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
}
