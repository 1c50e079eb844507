// Command probe is what package engine runs in a privileged container: `probe wait`
// keeps the container, `probe report` prints as JSON what is possible in it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	switch command := append(os.Args, "")[1]; command {
	case "wait":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
		<-stop
	case "report":
		// -999 is what the kubelet gives to critical pods and a node's services.
		err := os.WriteFile("/proc/self/oom_score_adj", []byte("-999"), 0)
		if err := json.NewEncoder(os.Stdout).Encode(map[string]bool{"oomScoreAdj": err == nil}); err != nil {
			fmt.Fprintln(os.Stderr, "probe:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "probe: unknown command %q: use wait or report\n", command)
		os.Exit(2)
	}
}
