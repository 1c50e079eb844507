package ociruntime

import (
	"slices"
	"testing"
)

func TestBoundingSet(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   Set
		fails  bool
	}{
		"of a bounded host":    {status: "Name:\tx\nCapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\nCapAmb:\t0\n", want: 0x1fffeffffff},
		"without a last line":  {status: "CapBnd:\t000001ffffffffff", want: 0x1ffffffffff},
		"of an old kernel":     {status: "CapInh:\t0\nCapPrm:\t1\n", fails: true},
		"that is not a number": {status: "CapBnd:\tall\n", fails: true},
		"of an empty file":     {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := BoundingSet([]byte(test.status))
			if (err != nil) != test.fails || got != test.want {
				t.Errorf("BoundingSet = %x, %v, want %x, failure %v", got, err, test.want, test.fails)
			}
		})
	}
}

func TestSetKnowsCapabilitiesByEveryNameThatAnEngineUses(t *testing.T) {
	const bounded = Set(0x1fffeffffff) // all but CAP_SYS_RESOURCE
	for name, want := range map[string]bool{
		"CAP_CHOWN":              true,
		"CAP_SYS_RESOURCE":       false,
		"SYS_RESOURCE":           false,
		"cap_sys_resource":       false,
		"sys_admin":              true,
		"CAP_CHECKPOINT_RESTORE": true,
		"CAP_NO_SUCH_THING":      false,
		"":                       false,
	} {
		if got := bounded.Has(name); got != want {
			t.Errorf("Has(%q) = %v, want %v", name, got, want)
		}
	}
}

// The numbers are linux/capability.h's: one name too few shifts all that follow.
func TestCapabilityNumbersAreTheKernels(t *testing.T) {
	for number, want := range map[Capability]string{
		0: "CAP_CHOWN", 8: "CAP_SETPCAP", 12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN", 24: "CAP_SYS_RESOURCE",
		27: "CAP_MKNOD", 31: "CAP_SETFCAP", 37: "CAP_AUDIT_READ", 38: "CAP_PERFMON", 40: "CAP_CHECKPOINT_RESTORE",
		41: "CAP_41",
	} {
		if got := number.String(); got != want {
			t.Errorf("capability %d is called %s, want %s", uint(number), got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct {
		set  Set
		last Capability
		want []string
	}{
		"nothing on a full host":                             {set: 0x1ffffffffff, last: 40},
		"what the set lacks":                                 {set: 0x1fffeffffff, last: 40, want: []string{"CAP_SYS_RESOURCE"}},
		"nothing that the kernel does not know":              {set: 0x3fffffffff, last: 37},
		"what the kernel knows and this package has no name": {set: 0x1ffffffffff, last: 41, want: []string{"CAP_41"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range test.set.Missing(test.last) {
				got = append(got, c.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("Missing(%d) = %v, want %v", test.last, got, test.want)
			}
		})
	}
}

func TestLastCapabilityIsOneThatThisKernelHas(t *testing.T) {
	last, err := LastCapability()
	if err != nil {
		t.Fatal(err)
	}
	if last < 37 { // CAP_AUDIT_READ, Linux 3.16
		t.Errorf("LastCapability = %d, want at least 37", last)
	}
}
