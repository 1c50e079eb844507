package proof

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestEventuallyReturnsTheLastError(t *testing.T) {
	calls := 0
	err := eventually(t.Context(), time.Minute, func() error {
		if calls++; calls < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, error %v; want 2 and none", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := eventually(ctx, time.Minute, func() error { return errors.New("never") }); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("error %v, want the last one", err)
	}
}

func TestSameAddressKnowsBothSpellings(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"10.244.0.5", "10.244.0.5", true},
		{"[::ffff:10.244.0.5]", "10.244.0.5", true},
		{"[fd00::1]", "fd00::1", true},
		{"10.244.0.5", "10.244.0.6", false},
		{"", "10.244.0.6", false},
	} {
		if got := sameAddress(tc.a, tc.b); got != tc.want {
			t.Errorf("sameAddress(%q, %q) = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}
