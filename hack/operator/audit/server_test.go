package audit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// server speaks the list protocol of an API server that has pods and nothing else:
// limit and continue, protobuf or JSON, and 410 for a token that is too old.
type server struct {
	pods     []v1.Pod
	jsonOnly bool
	// expired says what a continue token is answered with, instead of a page.
	expired func(token string) *metav1.Status

	requests atomic.Int32 // for pods
	encoded  map[string][]byte
}

// start serves until the test ends and returns a client of it.
func (s *server) start(tb testing.TB) kubernetes.Interface {
	tb.Helper()
	s.encoded = map[string][]byte{}
	listener := httptest.NewServer(s)
	tb.Cleanup(listener.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType:        runtime.ContentTypeProtobuf,
		AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/pods" {
		s.write(w, http.StatusNotFound, runtime.ContentTypeJSON, "", &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
		return
	}
	s.requests.Add(1)
	contentType := runtime.ContentTypeJSON
	if !s.jsonOnly && strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		contentType = runtime.ContentTypeProtobuf
	}
	token := r.URL.Query().Get("continue")
	if s.expired != nil && token != "" {
		if status := s.expired(token); status != nil {
			s.write(w, http.StatusGone, runtime.ContentTypeJSON, "", status)
			return
		}
	}
	limit := len(s.pods)
	if text := r.URL.Query().Get("limit"); text != "" {
		limit, _ = strconv.Atoi(text)
	}
	// The token is the index of the next pod, as the API server's is the next key. A
	// newer snapshot's token has a mark.
	from, _ := strconv.Atoi(strings.TrimSuffix(token, "+"))
	to := min(from+limit, len(s.pods))
	page := &v1.PodList{Items: s.pods[from:to]}
	if to < len(s.pods) {
		page.Continue = strconv.Itoa(to)
	}
	s.write(w, http.StatusOK, contentType, fmt.Sprintf("%s %d %d", contentType, from, to), page)
}

// write sends object. What has a key is encoded once.
func (s *server) write(w http.ResponseWriter, code int, contentType, key string, object runtime.Object) {
	body, ok := s.encoded[key]
	if !ok || key == "" {
		info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
		var err error
		if body, err = runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"}), object); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.encoded[key] = body
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that went away is no concern of ours
}

// gone is the API server's answer to a token that is too old, which offers next.
func gone(next string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, ListMeta: metav1.ListMeta{Continue: next},
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
	}
}
