package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestAdmitAnswersAReviewWithThePatch(t *testing.T) {
	const patch = `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "7"},
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		body string
		want int
	}{
		"a review":           {string(body), http.StatusOK},
		"something else":     {`{"kind":"Pod"}`, http.StatusBadRequest},
		"what is not JSON":   {`<`, http.StatusBadRequest},
		"a body that is not": {``, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			admit([]byte(patch)).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body)))
			if answer.Code != test.want {
				t.Fatalf("status %d, want %d", answer.Code, test.want)
			}
			if test.want != http.StatusOK {
				return
			}
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			want := admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &admissionv1.AdmissionResponse{
				UID: "7", Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch), Patch: []byte(patch),
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestAdmitNeverAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	answer := httptest.NewRecorder()
	admit(nil).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/never", nil).WithContext(ctx))
	if ctx.Err() == nil || answer.Body.Len() > 0 {
		t.Errorf("it answered %q before the request ended", answer.Body)
	}
}
