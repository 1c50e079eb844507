package doctor

import (
	"path/filepath"
	"testing"
)

func TestCgroups(t *testing.T) {
	v1 := func(more map[string]string, but string) map[string]string {
		all := map[string]string{}
		for _, name := range controllersV1 {
			if name != but {
				all[name+"/tasks"] = ""
			}
		}
		for name, text := range more {
			all[name] = text
		}
		return all
	}
	for name, test := range map[string]struct {
		files                 map[string]string
		status, found, remedy string
	}{
		"v2":                        {map[string]string{"cgroup.controllers": "cpuset cpu io memory hugetlb pids\n"}, OK, "v2", ""},
		"v2 without a controller":   {map[string]string{"cgroup.controllers": "cpu io pids\n"}, Fail, "without memory", "controllers"},
		"v2 that pins no CPUs":      {map[string]string{"cgroup.controllers": "cpu io memory pids\n"}, OK, "v2", ""},
		"v1":                        {v1(nil, ""), OK, "v1: works with", ""},
		"v1 with two in one folder": {v1(map[string]string{"cpu,cpuacct/tasks": ""}, "cpuacct"), OK, "v1", ""},
		"v1 without a controller":   {v1(nil, "pids"), Fail, "without pids", "controllers"},
		"none":                      {nil, Fail, "none mounted", "cgroupfs-mount"},
	} {
		t.Run(name, func(t *testing.T) { cgroups(files(t, test.files)).want(t, test.status, test.found, test.remedy) })
	}
	cgroups(filepath.Join(t.TempDir(), "none")).want(t, Fail, "none mounted", "cgroupfs-mount")
}
