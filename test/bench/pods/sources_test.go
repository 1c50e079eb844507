package pods

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// variables is how many variables the main container of a pod has.
	variables = 100

	mainContainer = "main"
	volumeName    = "config"
	envFile       = "config.env"
	configMapName = "config"
)

// source is where a pod's variables come from.
type source struct {
	name string // of pods, and of results
	env  func(key, value string) v1.EnvVar
}

var sources = []source{
	{"literals", func(key, value string) v1.EnvVar {
		return v1.EnvVar{Name: key, Value: value}
	}},
	{"configmap", func(key, _ string) v1.EnvVar {
		return v1.EnvVar{Name: key, ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
			LocalObjectReference: v1.LocalObjectReference{Name: configMapName}, Key: key,
		}}}
	}},
	{"filekeyref", func(key, _ string) v1.EnvVar {
		return v1.EnvVar{Name: key, ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{
			VolumeName: volumeName, Path: envFile, Key: key,
		}}}
	}},
}

func variable(i int) (key, value string) { return fmt.Sprintf("KEY%d", i), fmt.Sprintf("value-%d", i) }

// configMap has the variables of every pod.
func configMap() *v1.ConfigMap {
	data := map[string]string{}
	for i := range variables {
		key, value := variable(i)
		data[key] = value
	}
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMapName}, Data: data}
}

// pod is a pod that takes its variables from s. Whatever s is, an init container
// writes them to an env file first, so that all pods do the same work but for s. The file has
// the form VAR='VALUE' if quoted, and VAR=VALUE otherwise.
func (s source) pod(number int, quoted bool) *v1.Pod {
	quote := ""
	if quoted {
		quote = "'"
	}
	var env []v1.EnvVar
	for i := range variables {
		env = append(env, s.env(variable(i)))
	}
	write := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo "KEY$i=%[2]svalue-$i%[2]s"; i=$((i+1)); done >/data/%s`, variables, quote, envFile)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.name, number)},
		Spec: v1.PodSpec{
			RestartPolicy:                 v1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			InitContainers: []v1.Container{{
				Name: "write", Image: "podenv.dev/busybox:1", ImagePullPolicy: v1.PullNever,
				Command:      []string{"sh", "-c", write},
				VolumeMounts: []v1.VolumeMount{{Name: volumeName, MountPath: "/data"}},
			}},
			// It prints its environment as soon as it runs, and waits.
			Containers: []v1.Container{{
				Name: mainContainer, Image: "podenv.dev/envdump:1", ImagePullPolicy: v1.PullNever,
				Args: []string{"serve"}, Env: env,
			}},
			Volumes: []v1.Volume{{Name: volumeName, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
	}
}
