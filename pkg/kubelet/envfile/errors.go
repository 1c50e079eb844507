package envfile

import "fmt"

// Reason says why a variable could not be taken from an env file. The set is
// closed, so that a metric can use it as a label.
type Reason string

const (
	// ReasonNotFound: the volume or the file does not exist.
	ReasonNotFound Reason = "not_found"
	// ReasonKeyNotFound: the file does not define the key.
	ReasonKeyNotFound Reason = "key_not_found"
	// ReasonInvalidSyntax: the file is not an env file.
	ReasonInvalidSyntax Reason = "invalid_syntax"
	// ReasonInvalidName: the file defines a variable with a name that is not allowed.
	ReasonInvalidName Reason = "invalid_name"
	// ReasonLimitExceeded: the file, a name, a value or the path is too long.
	ReasonLimitExceeded Reason = "limit_exceeded"
	// ReasonNotRegular: the path names a directory, FIFO, socket or device.
	ReasonNotRegular Reason = "not_regular"
	// ReasonOutsideVolume: the path leaves the volume.
	ReasonOutsideVolume Reason = "outside_volume"
	// ReasonPermissionDenied: the container's user, or the kubelet itself, may
	// not read the file or search a directory on the way to it.
	ReasonPermissionDenied Reason = "permission_denied"
	// ReasonUnstable: the file has a writer, or kept changing while it was read.
	ReasonUnstable Reason = "unstable"
	// ReasonInterrupted: the context ended before the file was read.
	ReasonInterrupted Reason = "interrupted"
	// ReasonInvalidVolume: the volume cannot hold an env file.
	ReasonInvalidVolume Reason = "invalid_volume"
	// ReasonReadFailed: the node failed to read the file for any other cause.
	ReasonReadFailed Reason = "read_failed"
)

// One error per reason, for errors.Is. Which line is at fault, and the exact
// rule, is only in the error that Parse or Read returned.
var (
	ErrNotFound         = &Error{Reason: ReasonNotFound, rule: "the file does not exist: write it before this container starts, or set optional"}
	ErrKeyNotFound      = &Error{Reason: ReasonKeyNotFound, rule: "the file does not define the key: add it, or set optional"}
	ErrInvalidSyntax    = &Error{Reason: ReasonInvalidSyntax, rule: "the file is not an env file"}
	ErrInvalidName      = &Error{Reason: ReasonInvalidName, rule: "the name before = is not a valid environment variable name"}
	ErrLimitExceeded    = &Error{Reason: ReasonLimitExceeded, rule: "a limit is exceeded"}
	ErrNotRegular       = &Error{Reason: ReasonNotRegular, rule: "must be a regular file, or a symbolic link to one"}
	ErrOutsideVolume    = &Error{Reason: ReasonOutsideVolume, rule: "the path must stay inside the volume: use relative symbolic links only"}
	ErrPermissionDenied = &Error{Reason: ReasonPermissionDenied, rule: "the node may not read the file: check its permissions"}
	ErrUnstable         = &Error{Reason: ReasonUnstable, rule: "the file kept changing while it was read: write it once, or replace it by a rename"}
	ErrInterrupted      = &Error{Reason: ReasonInterrupted, rule: "reading stopped: the env files of the container took too long, or the pod is being deleted"}
	ErrReadFailed       = &Error{Reason: ReasonReadFailed, rule: "the node could not read the file"}
)

// The API server refuses a pod with such a volume, and so does the kubelet if it is a
// static pod: these are for what slips past them.
var (
	ErrNoVolume    = &Error{Reason: ReasonInvalidVolume, rule: "the pod has no volume of that name"}
	ErrNotEmptyDir = &Error{Reason: ReasonInvalidVolume, rule: "the volume must be an emptyDir"}
)

// Error is every error of this package. It never wraps another one: those of
// the os package carry paths of the node.
type Error struct {
	// Reason is the kind of failure.
	Reason Reason
	// Line is the line of the file at fault, counted from 1, or 0 where the
	// failure has no line.
	Line int

	// rule is what the file must comply with. It is constant text or an
	// errno's: nothing that a workload wrote may get in here.
	rule string
}

// Error names the line, if there is one, and the rule that is broken.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.rule
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.rule)
}

// Is makes every error of a reason the same to errors.Is.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// atLine returns e with its line, and with another rule unless that is empty.
func (e *Error) atLine(line int, rule string) *Error {
	at := *e
	at.Line = line
	if rule != "" {
		at.rule = rule
	}
	return &at
}
