package kuberuntime

import (
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	grpcstatus "google.golang.org/grpc/status"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	forked "k8s.io/kubernetes/third_party/forked/golang/expansion"
	"k8s.io/utils/lru"
)

// withCommandAsWritten returns an error of the container runtime in which a word
// of the container's command or args stands as the pod has it, $(NAME), in the
// place of what it was expanded to: the error is shown in events, status and
// logs, and a variable may hold a secret.
func withCommandAsWritten(err error, container *v1.Container, config *runtimeapi.ContainerConfig) error {
	if err == nil {
		return nil
	}
	s, _ := grpcstatus.FromError(err)
	message := MessageWithWordsAsWritten(s.Message(), wordsOf(container), expandedWordsOf(config))
	if message == s.Message() {
		return err
	}
	return grpcstatus.Error(s.Code(), message)
}

func wordsOf(container *v1.Container) []string {
	return append(append([]string{}, container.Command...), container.Args...)
}

func expandedWordsOf(config *runtimeapi.ContainerConfig) []string {
	return append(append([]string{}, config.GetCommand()...), config.GetArgs()...)
}

// startErrors are the messages, as written, of the last containers that could not be
// started, by container ID; "" if no variable was expanded in their words. The runtime
// returns its own message with each status of such a container, when what the words
// were expanded to is not known any more.
var startErrors = lru.New(1000)

// startErrorAsWritten is withCommandAsWritten for the start of a container. It keeps
// the message for MessageOfStart.
func startErrorAsWritten(err error, containerID string, container *v1.Container, config *runtimeapi.ContainerConfig) error {
	err = withCommandAsWritten(err, container, config)
	if err == nil {
		return nil
	}
	message := ""
	if len(replacements(wordsOf(container), expandedWordsOf(config))) > 0 {
		s, _ := grpcstatus.FromError(err)
		message = s.Message()
		if limit := kubecontainer.MaxContainerTerminationMessageLength; len(message) > limit {
			message = strings.ToValidUTF8(message[:limit], "") + "..."
		}
	}
	startErrors.Add(containerID, message)
	return err
}

// MessageOfStart returns what may be shown of message, the runtime's about a container
// that it could not start, or false if this kubelet has not tried to start it.
func MessageOfStart(containerID, message string) (string, bool) {
	written, ok := startErrors.Get(containerID)
	if ok && written != "" {
		message = written.(string)
	}
	return message, ok
}

// MessageWithWordsAsWritten returns a message of the container runtime in which
// each of words in which a variable was expanded stands in the place of what it
// was expanded to. All else stays as it is, such as the $(date) of a shell's
// script. If there are too many words to look for it returns MessageNotShown.
func MessageWithWordsAsWritten(message string, words, expanded []string) string {
	written := replacements(words, expanded)
	if len(written) == 0 {
		return message
	}
	size := len(message)
	for _, word := range expanded {
		size += len(word)
	}
	if len(written)*size > maxCompared {
		return MessageNotShown
	}
	var others []string // that stay whole, though one of these is part of them
	for _, word := range expanded {
		for key := range written {
			if key != "" && key != word && strings.Contains(word, key) {
				others = append(others, word)
				break
			}
		}
	}
	if len(others)*len(message) > maxCompared {
		return MessageNotShown
	}
	for _, word := range others {
		if _, ok := written[word]; !ok {
			written[word] = word
		}
	}
	return replaceWords(message, written)
}

// MessageNotShown is in the place of a message of the container runtime in which
// words cannot be replaced.
const MessageNotShown = "the container runtime could not run the container; its message is not shown, because it may have the value of a variable"

// maxCompared bounds how many bytes are compared for one message, which takes up
// to some 50 ms.
const maxCompared = 16 << 20

// replacements returns those of words in which a variable was expanded, by what each
// was expanded to.
func replacements(words, expanded []string) map[string]string {
	written := map[string]string{}
	none := forked.MappingFuncFor()
	for i := range expanded {
		if i < len(words) && expanded[i] != forked.Expand(words[i], none) {
			quotedWord := strconv.Quote(words[i])
			// A runtime that is given the words as JSON has U+FFFD for each byte that is not UTF-8.
			for _, word := range []string{expanded[i], string([]rune(expanded[i]))} {
				written[word] = words[i]
				quoted := strconv.Quote(word) // as Go programs quote it
				written[quoted[1:len(quoted)-1]] = quotedWord[1 : len(quotedWord)-1]
			}
		}
	}
	return written
}

// replaceWords replaces each key of words in text by its value, the longest key
// that fits first, where it is no part of a longer word.
func replaceWords(text string, words map[string]string) string {
	keys := make([]string, 0, len(words))
	for key := range words {
		if key != "" {
			keys = append(keys, key)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return len(keys[i]) > len(keys[j]) })
	var out strings.Builder
	for at := 0; at < len(text); {
		found := ""
		for _, key := range keys {
			if strings.HasPrefix(text[at:], key) && isWhole(text, at, at+len(key)) {
				found = key
				break
			}
		}
		if found == "" {
			out.WriteByte(text[at])
			at++
			continue
		}
		out.WriteString(words[found])
		at += len(found)
	}
	return out.String()
}

// isWhole reports whether text[start:end] neither begins nor ends within a word.
func isWhole(text string, start, end int) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	before, _ := utf8.DecodeLastRuneInString(text[:start]) // RuneError of nothing
	first, _ := utf8.DecodeRuneInString(text[start:])
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !(inWord(before) && inWord(first)) && !(inWord(last) && inWord(after))
}
