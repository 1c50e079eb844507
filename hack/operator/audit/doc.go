// Package audit answers what KEP-3721 and KEP-4369 ask for operators: is the feature in
// use? It reads the pods, pod templates and PodPresets of any cluster, page by page, and
// finds fileKeyRef and names of variables that only relaxed validation accepts, those that
// envFrom makes of keys included. It writes nothing to the cluster.
package audit
