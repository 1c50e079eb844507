package expand

import "strings"

// nearest returns the name of names that was probably meant by name, or "". One
// that differs in case only counts as the nearest.
func nearest(name string, names []string) string {
	// One slip in a short name, two in a long one.
	best, limit := "", max(1, min(2, len(name)/5))
	for _, candidate := range names {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		// A word of which nothing is right is another word: DB_PORT is not MQ_PORT.
		if d := distance(name, candidate); d <= limit && (d == 1 || d < differing(name, candidate)) {
			best, limit = candidate, d-1
		}
	}
	return best
}

// differing is the length of what is between the first and the last byte in which
// a and b differ.
func differing(a, b string) int {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}

// distance is how many bytes must be added, removed, replaced or swapped with the
// next to make b of a (the optimal string alignment distance).
func distance(a, b string) int {
	var before, previous []int
	current := make([]int, len(b)+1)
	for j := range current {
		current[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, previous, current = previous, current, make([]int, len(b)+1)
		current[0] = i
		for j := 1; j <= len(b); j++ {
			replace := previous[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			current[j] = min(replace, previous[j]+1, current[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
	}
	return current[len(b)]
}
