package inject

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
)

func envName(e *v1.EnvVar) string        { return e.Name }
func mountPath(m *v1.VolumeMount) string { return cleanPath(m.MountPath) }
func volumeName(v *v1.Volume) string     { return v.Name }

// cleanPath returns a path in a container as the kubelet mounts it: /cache/ is /cache, and
// so is cache. A path that starts as only those of Windows do, C: or \, stays as it is.
func cleanPath(p string) string {
	if strings.HasPrefix(p, `\`) || len(p) > 1 && p[1] == ':' && isLetter(p[0]) {
		return p
	}
	return path.Clean("/" + p)
}

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }

// PathsAgain returns the places in paths of those that are a path before them, written otherwise.
func PathsAgain(paths []string) (at []int) {
	first := map[string]string{}
	for i, p := range paths {
		clean := cleanPath(p)
		if other, ok := first[clean]; !ok {
			first[clean] = p
		} else if other != p {
			at = append(at, i)
		}
	}
	return at
}

// semantic compares as equality.Semantic does, and takes a bool that is not set for false: the API
// does so with each pointer to a bool that these types have, such as optional.
var semantic = func() conversion.Equalities {
	equalities := equality.Semantic.Copy()
	isTrue := func(b *bool) bool { return b != nil && *b }
	if err := equalities.AddFunc(func(a, b *bool) bool { return isTrue(a) == isTrue(b) }); err != nil {
		panic(err) // the signature is wrong, which each test would see
	}
	return equalities
}()

func sameEnv(a, b *v1.EnvVar) bool            { return semantic.DeepEqual(a, b) }
func sameEnvFrom(a, b *v1.EnvFromSource) bool { return semantic.DeepEqual(a, b) }
func sameVolume(a, b *v1.Volume) bool         { return semantic.DeepEqual(a, b) }

func sameMount(a, b *v1.VolumeMount) bool {
	cleanA, cleanB := *a, *b
	cleanA.MountPath, cleanB.MountPath = mountPath(a), mountPath(b)
	return semantic.DeepEqual(cleanA, cleanB)
}

// source is what an item of envFrom is known by.
type source struct{ kind, name, prefix string }

func sourceOf(s *v1.EnvFromSource) source {
	switch {
	case s.ConfigMapRef != nil:
		return source{"ConfigMap", s.ConfigMapRef.Name, s.Prefix}
	case s.SecretRef != nil:
		return source{"Secret", s.SecretRef.Name, s.Prefix}
	}
	return source{prefix: s.Prefix}
}

func (s source) String() string {
	text := s.kind + " " + show(s.name)
	if s.prefix != "" {
		text += " with prefix " + show(s.prefix)
	}
	return text
}

// merge compares the items of two lists that have the same key. It returns the items of
// want whose key have does not know, and the keys that have knows with something else:
// all items of one key count, in their order, as a list may name a variable twice.
func merge[T any, K comparable](have, want []T, key func(*T) K, same func(a, b *T) bool) (missing []T, clashes []K) {
	if len(want) == 0 {
		return nil, nil
	}
	if len(have) == 0 {
		return want, nil
	}
	had, wanted := under(have, key), under(want, key)
	for i := range want {
		k := key(&want[i])
		of := wanted(k)
		if had := had(k); len(had) == 0 {
			missing = append(missing, want[i])
		} else if of[0] == i && !sameItems(have, had, want, of, same) {
			clashes = append(clashes, k)
		}
	}
	return missing, clashes
}

func sameItems[T any](a []T, ofA []int, b []T, ofB []int, same func(a, b *T) bool) bool {
	if len(ofA) != len(ofB) {
		return false
	}
	for i := range ofA {
		if !same(&a[ofA[i]], &b[ofB[i]]) {
			return false
		}
	}
	return true
}

// under returns a function that finds the places of the items with a key. Short lists are
// searched, as a map costs more than it saves there.
func under[T any, K comparable](items []T, key func(*T) K) func(K) []int {
	if len(items) <= 16 {
		return func(k K) []int {
			var at []int
			for i := range items {
				if key(&items[i]) == k {
					at = append(at, i)
				}
			}
			return at
		}
	}
	index := make(map[K][]int, len(items))
	for i := range items {
		k := key(&items[i])
		index[k] = append(index[k], i)
	}
	return func(k K) []int { return index[k] }
}
