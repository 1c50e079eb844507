package cluster

import (
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"

	"podenv.dev/hack/internal/progress"
)

// logLevel is the most that kind says; at this level it has kubeadm's output, too.
const logLevel = 3

// logger shows kind's status lines as what a step does now, and puts all that kind
// says into the step's log.
type logger struct{ step *progress.Step }

var _ log.Logger = logger{}

// Warn and the methods below are kind's.
func (l logger) Warn(message string)               { l.print("warning: " + message) }
func (l logger) Warnf(format string, args ...any)  { l.Warn(fmt.Sprintf(format, args...)) }
func (l logger) Error(message string)              { l.print("error: " + message) }
func (l logger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }
func (l logger) print(message string) {
	fmt.Fprintln(l.step.Log(), strings.TrimRight(message, "\n"))
}

// V returns the logger of messages of a level.
func (l logger) V(level log.Level) log.InfoLogger { return infoLogger{l, level} }

type infoLogger struct {
	logger
	level log.Level
}

func (l infoLogger) Enabled() bool                    { return l.level <= logLevel }
func (l infoLogger) Infof(format string, args ...any) { l.Info(fmt.Sprintf(format, args...)) }

func (l infoLogger) Info(message string) {
	if !l.Enabled() {
		return
	}
	if now := status(message); l.level == 0 && now != "" {
		l.step.Now("%s", now)
		return
	}
	l.print(message)
}

// status is what kind has begun to do, if message says so: " • Preparing nodes 📦  ...".
func status(message string) string {
	text, ok := strings.CutPrefix(strings.TrimSpace(message), "•")
	if !ok {
		return ""
	}
	text = strings.TrimSuffix(text, "...")
	plain := strings.Map(func(r rune) rune {
		if r > unicode.MaxLatin1 {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(plain), " ")
}
