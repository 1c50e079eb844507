// Package rest provides the storage of the API group settings.k8s.io.
package rest

import (
	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/settings"
	"k8s.io/kubernetes/pkg/features"
	podpresetstore "k8s.io/kubernetes/pkg/registry/settings/podpreset/storage"
)

// RESTStorageProvider provides the storage of the group.
type RESTStorageProvider struct{}

// NewRESTStorage returns the versions and resources that are enabled.
func (p RESTStorageProvider) NewRESTStorage(config serverstorage.APIResourceConfigSource, optsGetter generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info := genericapiserver.NewDefaultAPIGroupInfo(settings.GroupName, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	const resource = "podpresets"
	if !config.ResourceEnabled(settingsv1alpha1.SchemeGroupVersion.WithResource(resource)) {
		return info, nil
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.PodPreset) {
		klog.Warning("settings.k8s.io/v1alpha1 is enabled, but not served, as the feature gate PodPreset is off")
		return info, nil
	}
	store, err := podpresetstore.NewREST(optsGetter)
	if err != nil {
		return genericapiserver.APIGroupInfo{}, err
	}
	info.VersionedResourcesStorageMap[settingsv1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{resource: store}
	return info, nil
}

// GroupName is the name of the group.
func (p RESTStorageProvider) GroupName() string {
	return settings.GroupName
}
