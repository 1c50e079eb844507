// Package bench measures the kubelet's reader of env files beside others: upstream's,
// joho/godotenv and compose-go's. All read the same files, from the disk, and all
// give the values of the keys asked for. `make bench` runs it and prints the medians
// as a table.
//
// A benchmark's name is its row: BenchmarkRead/1000_keys_of_1000/by=kubernetes.
package bench
