// Package codegen runs the generators of an assembled Kubernetes tree, built from that
// tree, so that every generated file says what the API types say.
//
// Only what a change can reach is generated. The change is what differs from the release;
// it reaches the packages that it touches and, from type to type, the packages whose
// types contain the changed ones. The generators work in views of the tree, side by side,
// and the tree gets their results at the end, all or none:
//
//	change ─► packages ─┬─► protobuf, deepcopy ─┬─► fixtures ─────────────────────────┬─► tree
//	                    ├─► openapi ────────────┴─► apply configurations, OpenAPI specs ┤
//	                    ├─► conversion, defaults, validation ─────────────────────────┤
//	                    └─► clients, listers, informers ──────────────────────────────┘
package codegen
