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
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"podenv.dev/hack/internal/image"
)

// BOM returns the bill of materials of img in SPDX 2.3: the modules in the build information of
// its Go programs, those in archives of images included, and debian, packages as name=version.
// Modules without a version of their own, which Kubernetes' are, have that of the image.
func BOM(img v1.Image, name, version string, debian []string) ([]byte, error) {
	hash, err := img.Digest()
	if err != nil {
		return nil, err
	}
	packages := map[string]bool{} // by URL with version
	for _, p := range debian {
		packages["pkg:deb/debian/"+strings.Replace(p, "=", "@", 1)] = true
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
		err = goModules(r, version, packages)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("bill of materials of %s: %w", name, err)
		}
	}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: name, DocumentNamespace: "https://podenv.dev/spdx/" + name + "/" + hash.Hex,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "podenv"}},
			Created:  image.Epoch.UTC().Format("2006-01-02T15:04:05Z"),
		},
	}
	add := func(url, relationship string, from common.ElementID) common.ElementID {
		url, version := url[:strings.LastIndex(url, "@")], url[strings.LastIndex(url, "@")+1:]
		id := common.ElementID(fmt.Sprintf("Package-%d", len(doc.Packages)))
		short := url[strings.LastIndex(url, ":")+1:]
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName: strings.TrimPrefix(strings.TrimPrefix(short, "golang/"), "deb/debian/"), PackageVersion: version,
			PackageSPDXIdentifier: id, PackageDownloadLocation: "NOASSERTION",
			PackageExternalReferences: []*spdx.PackageExternalReference{{
				Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
				Locator: url + "@" + strings.ReplaceAll(version, "+", "%2B"),
			}},
		})
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(id)), Relationship: relationship,
		})
		return id
	}
	root := add("pkg:oci/"+name+"@"+hash.String(), common.TypeRelationshipDescribe, "DOCUMENT")
	for _, url := range slices.Sorted(maps.Keys(packages)) {
		add(url, common.TypeRelationshipContains, root)
	}
	return json.Marshal(doc)
}

// goModules adds the modules of the Go programs in the tar r to packages.
func goModules(r io.Reader, version string, packages map[string]bool) error {
	tr := tar.NewReader(r)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch start := make([]byte, 4); {
		case hdr.Typeflag != tar.TypeReg || hdr.Size < int64(len(start)):
		case strings.HasSuffix(hdr.Name, ".tar"), strings.HasSuffix(hdr.Name, ".tar.gz"): // an archive of an image, and a layer in it
			if err := goModules(tr, version, packages); err != nil && !errors.Is(err, tar.ErrHeader) {
				return fmt.Errorf("%s: %w", hdr.Name, err)
			}
		default:
			if _, err := io.ReadFull(tr, start); err != nil {
				return err
			}
			if string(start) != "\x7fELF" {
				continue
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
			packages["pkg:golang/stdlib@"+goVersion] = true
			for _, m := range append(info.Deps, &info.Main) {
				own := cmp.Or(strings.TrimPrefix(m.Version, "(devel)"), version)
				if m.Replace != nil && strings.HasPrefix(m.Replace.Path, ".") { // a staging module
					own = version
				} else if m.Replace != nil {
					m, own = m.Replace, m.Replace.Version
				}
				if m.Path != "" {
					packages["pkg:golang/"+m.Path+"@"+own] = true
				}
			}
		}
	}
}
