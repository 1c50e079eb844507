// Package bench measures packages of ours beside others: the kubelet's reader of env
// files beside upstream's, joho/godotenv and compose-go's, the rules for names of
// variables and the expansion of references beside upstream's. All work on the same
// inputs, and all give the same results, which its tests check. `make bench` runs it and
// prints the medians as tables.
//
// A benchmark's name is its row: BenchmarkRead/1000_keys_of_1000/by=kubernetes.
package bench
