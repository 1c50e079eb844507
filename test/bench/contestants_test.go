package bench

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/joho/godotenv"
	upstream "k8s.io/kubernetes/pkg/kubelet/util/env"

	"podenv.dev/pkg/kubelet/envfile"
)

// contestant is one reader of env files.
type contestant struct {
	name string
	// read fills values with the values that the file called name in the folder
	// dir has for keys.
	read func(dir, name string, keys, values []string) error
	// parse is read without the file; nil for one that only reads files.
	parse func(data []byte, keys, values []string) error
	// quotes says that quotes are part of the value, as the form of v1.34 and older
	// minors has it. From v1.35 on values are in single quotes, so the files have them.
	quotes bool
}

var contestants = []contestant{
	{name: "envfile", quotes: true, read: readEnvfile(envfile.DotEnv), parse: parseEnvfile(envfile.DotEnv)},
	{name: "envfile-quoted", read: readEnvfile(envfile.SingleQuoted), parse: parseEnvfile(envfile.SingleQuoted)},
	{name: "kubernetes", read: readUpstream},
	{name: "godotenv", read: readGodotenv, parse: parseGodotenv},
	{name: "compose-go", read: readCompose, parse: parseCompose},
}

func readEnvfile(syntax envfile.Syntax) func(dir, name string, keys, values []string) error {
	return func(dir, name string, keys, values []string) error {
		found, err := envfile.Read(context.Background(), dir, name, keys, envfile.Options{Syntax: syntax})
		if err != nil {
			return err
		}
		return lookUp(found, keys, values)
	}
}

func parseEnvfile(syntax envfile.Syntax) func(data []byte, keys, values []string) error {
	return func(data []byte, keys, values []string) error {
		found, err := envfile.Parse(data, keys, envfile.Options{Syntax: syntax})
		if err != nil {
			return err
		}
		return lookUp(found, keys, values)
	}
}

func lookUp(found *envfile.Values, keys, values []string) (err error) {
	for i, key := range keys {
		if values[i], err = found.Lookup(key); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// readUpstream does what upstream's kubelet does with the variables of a container,
// one after the other, but for joining the path safely, which costs it more yet.
func readUpstream(dir, name string, keys, values []string) (err error) {
	for i, key := range keys {
		if values[i], err = upstream.ParseEnv(filepath.Join(dir, name), key); err != nil {
			return err
		}
	}
	return nil
}

func readGodotenv(dir, name string, keys, values []string) error {
	found, err := godotenv.Read(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return choose(found, keys, values)
}

func parseGodotenv(data []byte, keys, values []string) error {
	found, err := godotenv.UnmarshalBytes(data)
	if err != nil {
		return err
	}
	return choose(found, keys, values)
}

func readCompose(dir, name string, keys, values []string) error {
	found, err := dotenv.Read(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return choose(found, keys, values)
}

func parseCompose(data []byte, keys, values []string) error {
	found, err := dotenv.UnmarshalBytesWithLookup(data, nil)
	if err != nil {
		return err
	}
	return choose(found, keys, values)
}

func choose(found map[string]string, keys, values []string) error {
	for i, key := range keys {
		value, ok := found[key]
		if !ok {
			return fmt.Errorf("%s is missing", key)
		}
		values[i] = value
	}
	return nil
}
