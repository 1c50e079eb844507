package cluster

import "testing"

func TestStatus(t *testing.T) {
	tests := map[string]string{
		" • Preparing nodes 📦 📦   ...\n":                  "Preparing nodes",
		" • Ensuring node image (podenv/node:1) 🖼  ...\n": "Ensuring node image (podenv/node:1)",
		" • Starting control-plane 🕹️  ...\n":             "Starting control-plane",
		" ✓ Preparing nodes 📦 📦 \n":                       "",
		"Creating cluster \"podenv\" ...\n":               "",
	}
	for message, want := range tests {
		if got := status(message); got != want {
			t.Errorf("status(%q) = %q, want %q", message, got, want)
		}
	}
}
