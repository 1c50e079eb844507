package pod

import "k8s.io/apimachinery/pkg/api/equality"

// WithoutEnv returns the template without its variables, or nil where it has nothing else.
func (tpl *Template) WithoutEnv() *Template {
	if tpl == nil {
		return nil
	}
	rest := tpl.DeepCopy()
	rest.Env = nil
	if equality.Semantic.DeepEqual(rest, &Template{}) {
		return nil
	}
	return rest
}
