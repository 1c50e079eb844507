// Package codegen runs the generators of an assembled Kubernetes tree, built from that
// tree, so that every generated file agrees with the API types.
//
// Only what a change can reach is generated. The change is what differs from the release. It
// reaches the packages that it touches, and those that import them, directly or not. The
// generators run in parallel, each in a view of the tree. At the end the tree gets all of their
// results, or none:
//
//	change ─► packages ─┬─► protobuf, methods, openapi ─────────┬─► OpenAPI specs, apply configurations, fixtures ─► tree
//	                    └─► conversion, defaults, clients, … ───┘
package codegen
