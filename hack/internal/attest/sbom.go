package attest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// BOM returns the bill of materials of img in SPDX 2.3: the modules in the build information of
// its Go programs, those in archives of images included, and debian, packages as name=version.
// Modules without a version of their own, which Kubernetes' are, have that of the image.
func BOM(img v1.Image, name, version string, debian []string) ([]byte, error) {
	hash, err := img.Digest()
	if err != nil {
		return nil, err
	}
	found := map[string]bool{} // "type/name@version"
	for _, p := range debian {
		found["deb/debian/"+strings.Replace(p, "=", "@", 1)] = true
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			return nil, err
		}
		if err := errors.Join(goModules(r, version, found), r.Close()); err != nil {
			return nil, fmt.Errorf("bill of materials of %s: %w", name, err)
		}
	}
	type object = map[string]any
	var packages, relationships []object
	from, relationship := "SPDXRef-DOCUMENT", "DESCRIBES"
	for i, url := range append([]string{"oci/" + name + "@" + hash.String()}, slices.Sorted(maps.Keys(found))...) {
		at, id := strings.LastIndex(url, "@"), fmt.Sprintf("SPDXRef-Package-%d", i)
		packages = append(packages, object{"SPDXID": id, "name": url[:at], "versionInfo": url[at+1:], "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
			"externalRefs": []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:" + strings.ReplaceAll(url, "+", "%2B")}}})
		relationships = append(relationships, object{"spdxElementId": from, "relationshipType": relationship, "relatedSpdxElement": id})
		from, relationship = "SPDXRef-Package-0", "CONTAINS"
	}
	return json.Marshal(object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
		"documentNamespace": "https://podenv.dev/spdx/" + name + "/" + hash.Hex,
		"creationInfo":      object{"created": "1970-01-01T00:00:00Z", "creators": []string{"Tool: podenv"}},
		"packages":          packages, "relationships": relationships,
	})
}

// goModules adds the modules of the Go programs in the tar r to found.
func goModules(r io.Reader, version string, found map[string]bool) error {
	for tr := tar.NewReader(r); ; {
		hdr, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(hdr.Name, ".tar") { // an archive of an image, or a layer in it
			if err := goModules(tr, version, found); err != nil && !errors.Is(err, tar.ErrHeader) {
				return fmt.Errorf("%s: %w", hdr.Name, err)
			}
			continue
		}
		start := make([]byte, 4)
		if _, err := io.ReadFull(tr, start); err != nil || string(start) != "\x7fELF" {
			continue // a broken tar fails in Next
		}
		data, err := io.ReadAll(io.MultiReader(bytes.NewReader(start), tr))
		if err != nil {
			return err
		}
		info, err := buildinfo.Read(bytes.NewReader(data))
		if err != nil {
			continue // not written in Go
		}
		goVersion, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ") // experiments follow
		found["golang/stdlib@"+goVersion] = true
		for _, m := range append(info.Deps, &info.Main) {
			own := cmp.Or(strings.TrimPrefix(m.Version, "(devel)"), version)
			if m.Replace != nil && strings.HasPrefix(m.Replace.Path, ".") { // a staging module
				own = version
			} else if m.Replace != nil {
				m, own = m.Replace, m.Replace.Version
			}
			if m.Path != "" {
				found["golang/"+m.Path+"@"+own] = true
			}
		}
	}
}
