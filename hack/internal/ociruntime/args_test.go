package ociruntime

import "testing"

func TestParseArgs(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want Request
	}{
		"create with the bundle as containerd passes it": {
			args: []string{"--root", "/run/runc/moby", "--log", "/b/log.json", "--log-format", "json", "create", "--bundle", "/b", "--pid-file", "/b/init.pid", "id"},
			want: Request{Config: "/b/config.json"},
		},
		"create with -b": {args: []string{"create", "-b", "/b", "id"}, want: Request{Config: "/b/config.json"}},
		"create with the bundle in the same argument":   {args: []string{"create", "--bundle=/b", "id"}, want: Request{Config: "/b/config.json"}},
		"create in the current folder":                  {args: []string{"create", "id"}, want: Request{Config: "config.json"}},
		"run is create and start":                       {args: []string{"run", "--keep", "--bundle", "/b", "id"}, want: Request{Config: "/b/config.json"}},
		"the last of two bundles holds":                 {args: []string{"run", "--bundle", "/a", "-b=/b", "id"}, want: Request{Config: "/b/config.json"}},
		"a switch takes no value":                       {args: []string{"--systemd-cgroup", "--debug", "create", "--no-pivot", "--bundle", "/b", "id"}, want: Request{Config: "/b/config.json"}},
		"a global flag with a value in it":              {args: []string{"--root=/r", "--debug=true", "create", "--bundle", "/b", "id"}, want: Request{Config: "/b/config.json"}},
		"one dash means two":                            {args: []string{"-root", "/r", "create", "-bundle", "/b", "id"}, want: Request{Config: "/b/config.json"}},
		"the value of a global flag is not the command": {args: []string{"--log", "exec", "create", "--bundle", "/b", "id"}, want: Request{Config: "/b/config.json"}},
		"the value of --root may look like a flag":      {args: []string{"--root", "--bundle", "create", "-b", "/b", "id"}, want: Request{Config: "/b/config.json"}},
		"flags after the container are not ours":        {args: []string{"create", "--bundle", "/b", "id", "--bundle", "/c"}, want: Request{Config: "/b/config.json"}},
		"two dashes end the flags":                      {args: []string{"create", "--bundle", "/b", "--", "--bundle", "/c"}, want: Request{Config: "/b/config.json"}},

		"exec with a process file":                      {args: []string{"--root", "/r", "exec", "--process", "/p", "--detach", "id"}, want: Request{Process: "/p"}},
		"exec with a process file in the same argument": {args: []string{"exec", "--process=/p", "id"}, want: Request{Process: "/p"}},
		"exec with -p":                                  {args: []string{"exec", "-d", "-p", "/p", "--console-socket", "/c", "id"}, want: Request{Process: "/p"}},
		"exec with -p= ":                                {args: []string{"exec", "-p=/p", "id"}, want: Request{Process: "/p"}},
		"exec of a command line has no file":            {args: []string{"exec", "--env", "A=b", "--cwd", "/", "id", "ps"}},
		"the arguments of the command are its own":      {args: []string{"exec", "id", "ps", "-p", "1"}},
		"the value of --env is not a flag":              {args: []string{"exec", "--env", "--process=/x", "-p", "/p", "id"}, want: Request{Process: "/p"}},

		"no other command starts a process": {args: []string{"--root", "/r", "delete", "--force", "id"}},
		"the version":                       {args: []string{"--version"}},
		"nothing":                           {},
		"a global flag without its value":   {args: []string{"--root"}},
		"a bundle flag without its value":   {args: []string{"create", "--bundle"}, want: Request{Config: "config.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParseArgs(test.args); got != test.want {
				t.Errorf("ParseArgs(%q) = %+v, want %+v", test.args, got, test.want)
			}
		})
	}
}
