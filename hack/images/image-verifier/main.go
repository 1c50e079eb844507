// Command image-verifier is a plug-in of containerd that allows to pull an image if its statement
// of provenance, attached to it in its registry, is signed with a key. containerd calls it as
//
//	image-verifier -name NAME -digest DIGEST -stdin-media-type TYPE <DESCRIPTOR
//
// and takes its standard output as the reason.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"

	"podenv.dev/hack/internal/attest"
)

func main() {
	image := flag.String("name", "", "the reference that is pulled")
	digest := flag.String("digest", "", "the digest that it stands for")
	flag.String("stdin-media-type", "", "the type of what containerd writes to standard input; unused")
	key := flag.String("key", "/opt/containerd/image-verifier/key.pub", "the file of the public key")
	flag.Parse()
	if err := verify(context.Background(), *image, *digest, *key); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("signed")
}

func verify(ctx context.Context, image, digest, keyFile string) error {
	key, err := attest.LoadKey(keyFile)
	if err != nil {
		return err
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		return err
	}
	hash, err := name.NewDigest(ref.Context().Name() + "@" + digest)
	if err != nil {
		return err
	}
	_, err = attest.Check(ctx, hash, key)
	return err
}
