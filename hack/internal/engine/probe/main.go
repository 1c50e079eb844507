// Command probe is what package engine runs in a privileged container: `probe wait` keeps
// the container running, and `probe` shows that a process can be started in it.
package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	if slices.Contains(os.Args, "wait") {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
		<-stop
	}
}
