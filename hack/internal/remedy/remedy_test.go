package remedy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestExplain(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		kind error // nil: the error stays as it is
	}{
		"a full disk under this process":  {&os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, ErrNoDisk},
		"a full disk under the engine":    {errors.New("docker load: write /layer.tar: no space left on device"), ErrNoDisk},
		"a full disk under a compiler":    {errors.New("go build: write $WORK/b001: No space left on device"), ErrNoDisk},
		"a port that this process wants":  {fmt.Errorf("listen: %w", syscall.EADDRINUSE), ErrPortInUse},
		"a port that the engine wants":    {errors.New("docker run: Bind for 127.0.0.1:6443 failed: port is already allocated"), ErrPortInUse},
		"a port that another process has": {errors.New("listen tcp4 127.0.0.1:6443: bind: address already in use"), ErrPortInUse},
		"anything else":                   {errors.New("exit status 1"), nil},
		"what was explained already":      {&Error{ErrNoDisk, "buy one"}, nil},
		"a remedy in the text":            {errors.New("kubelet.log: no space left on device\n  " + ForDisk), nil},
		"no error":                        {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Explain(test.err)
			if test.kind == nil {
				if got != test.err {
					t.Errorf("Explain = %v, want the error as it was", got)
				}
				return
			}
			if !errors.Is(got, test.kind) || !errors.Is(got, test.err) {
				t.Errorf("Explain = %v, want %v and the error in its chain", got, test.kind)
			}
			if !strings.Contains(got.Error(), "`") {
				t.Errorf("no command to type in %v", got)
			}
		})
	}
}
