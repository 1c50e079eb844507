package config

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// podTemplateRulesKey is the key of config-defaults that has podTemplateRules as YAML.
const podTemplateRulesKey = "pod-template-rules"

// podTemplateRules says what pod templates of runs may have. See TEP-0101.
type podTemplateRules struct {
	ForbiddenEnvVariables []string `json:"forbidden-env-variables"`
}

// forbidByRules adds the names that the rules in text forbid to those of default-forbidden-env.
func (cfg *Defaults) forbidByRules(text string) error {
	var rules podTemplateRules
	if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
		return fmt.Errorf("failed parsing default config %q: %w", podTemplateRulesKey, err)
	}
	if len(rules.ForbiddenEnvVariables) > 0 {
		all := append(slices.Clone(cfg.DefaultForbiddenEnv), rules.ForbiddenEnvVariables...)
		slices.Sort(all)
		cfg.DefaultForbiddenEnv = slices.Compact(all)
	}
	return nil
}
