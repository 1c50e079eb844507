package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// apiserver FOLDER serves the lists in a folder, pods.json for /api/v1/pods, at $SERVER until
// the script ends. It answers 403 for the resource that the file "forbidden" names, and 404 for
// a resource without a file.
func apiserver(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	forbidden, err := os.ReadFile(path.Join(dir, "forbidden"))
	if err != nil && !os.IsNotExist(err) {
		ts.Fatalf("%v", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		resource := path.Base(r.URL.Path)
		if resource == strings.TrimSpace(string(forbidden)) {
			refuse(w, http.StatusForbidden, "Forbidden", "you may not list "+resource)
			return
		}
		list, err := os.ReadFile(path.Join(dir, resource+".json"))
		if err != nil {
			refuse(w, http.StatusNotFound, "NotFound", "there are no "+resource)
			return
		}
		_, _ = w.Write(list) // fails only if the client has gone
	}))
	ts.Defer(server.Close)
	ts.Setenv("SERVER", server.URL)
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
}
