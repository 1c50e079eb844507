package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// webhookAddress is where webhook listens.
const webhookAddress = ":8443"

// webhook is a mutating admission webhook: it answers every AdmissionReview with patch, a JSON
// patch, by TLS with the certificate and the key of two files, until ctx ends.
func webhook(ctx context.Context, certificate, key, patch string) error {
	server := &http.Server{Addr: webhookAddress, ReadHeaderTimeout: 10 * time.Second, Handler: admit([]byte(patch))}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServeTLS(certificate, key); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// admit allows each request, with patch; at the path /never it does not answer. The program has no library of Kubernetes in it: these
// are the fields of admission.k8s.io/v1 that an answer needs.
func admit(patch []byte) http.Handler {
	type response struct {
		UID       string `json:"uid"`
		Allowed   bool   `json:"allowed"`
		PatchType string `json:"patchType"`
		Patch     []byte `json:"patch"`
	}
	type review struct {
		APIVersion string                `json:"apiVersion"`
		Kind       string                `json:"kind"`
		Request    *struct{ UID string } `json:"request,omitempty"`
		Response   *response             `json:"response,omitempty"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/never" {
			<-r.Context().Done()
			return
		}
		var in review
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
			http.Error(w, "this is no AdmissionReview", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := review{in.APIVersion, in.Kind, nil, &response{in.Request.UID, true, "JSONPatch", patch}}
		_ = json.NewEncoder(w).Encode(out) // a client that went away is no concern of ours
	})
}
