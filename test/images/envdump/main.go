// Command envdump prints the environment that its process was given, exactly, as one
// JSON object: {"env":["A=b","C=d"]}. It is the only file of the test image
// podenv.dev/envdump, which so stands for every image without a shell.
//
//	envdump                  print the environment and exit
//	envdump serve [ADDRESS]  print it, then answer every HTTP request with it until
//	                         SIGTERM or SIGINT; ADDRESS is :8080 unless given
//	envdump overwrite-mapped FILE  print it, then change FILE through a shared mapping,
//	                         again and again, until SIGTERM or SIGINT
//	envdump webhook CERTIFICATE KEY PATCH  print it, then answer every AdmissionReview with
//	                         a JSON patch, by TLS on port 8443, until SIGTERM or SIGINT
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// linger is how long the process stays after it printed and has nothing else to do. When a
// container has ended, containerd before 1.6.22 closes the pipe of its log, read or not: on a
// loaded node, the log of a container that lived for milliseconds could stay empty.
const linger = 250 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "envdump:", err)
		os.Exit(1)
	}
}

// run does what args ask for. It is main without the process around it.
func run(ctx context.Context, args, env []string, out io.Writer) error {
	document, err := dump(env)
	if err != nil {
		return err
	}
	if _, err := out.Write(document); err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		select {
		case <-time.After(linger):
		case <-ctx.Done():
		}
		return nil
	case args[0] == "serve" && len(args) == 1:
		return serve(ctx, ":8080", document)
	case args[0] == "serve" && len(args) == 2:
		return serve(ctx, args[1], document)
	case args[0] == "overwrite-mapped" && len(args) == 2:
		return overwriteMapped(ctx, args[1])
	case args[0] == "webhook" && len(args) == 4:
		return webhook(ctx, args[1], args[2], args[3])
	}
	return fmt.Errorf("unknown arguments %q: use nothing, serve [ADDRESS], overwrite-mapped FILE or webhook CERTIFICATE KEY PATCH", args)
}
