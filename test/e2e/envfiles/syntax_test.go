package envfiles

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

var _ = describeIf(plainForm, "the value is what", func(f *framework.Framework) {
	ginkgo.DescribeTable("RFC 2 (.env) says:", func(ctx context.Context, content string, want map[string]string) {
		expectValues(ctx, f, content, want)
	},
		ginkgo.Entry("nothing after the equals sign is the empty string, and set",
			"A=\nB=  \n", map[string]string{"A": "", "B": ""}),
		ginkgo.Entry("the last definition of a name wins",
			"A=1\nB=2\nA=3\n", map[string]string{"A": "3", "B": "2"}),
		ginkgo.Entry("quotes, $ and # are literal",
			`A="q" 'r' $HOME ${HOME} $(HOME) $$ # no comment`+"\n",
			map[string]string{"A": `"q" 'r' $HOME ${HOME} $(HOME) $$ # no comment`}),
		ginkgo.Entry("only the first equals sign separates",
			"A=b=c==\n", map[string]string{"A": "b=c=="}),
		ginkgo.Entry("white space around name and value is ignored, inside the value it is kept",
			" \tA \t= \tb  c\t \n", map[string]string{"A": "b  c"}),
		ginkgo.Entry("blank lines and comments are ignored",
			"# A=comment\n\n \t\n  # A=indented comment\nA=1\n", map[string]string{"A": "1"}),
		ginkgo.Entry("a backslash at a line's end joins the next line with one space",
			"A=foo  \\\n  bar\\\nbaz\nB=2\n", map[string]string{"A": "foo bar baz", "B": "2"}),
		ginkgo.Entry("lines may end as they do on Windows",
			"A=1\r\n\r\n# comment\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}),
		ginkgo.Entry("the last line needs no line ending",
			"A=1\nB=2", map[string]string{"A": "1", "B": "2"}),
		ginkgo.Entry("a value may be any UTF-8",
			"A=grüße, 世界 🌍\n", map[string]string{"A": "grüße, 世界 🌍"}),
		ginkgo.Entry("a value may have 32 KiB",
			"A="+strings.Repeat("x", 32<<10)+"\n", map[string]string{"A": strings.Repeat("x", 32<<10)}),
	)
})

// The form of v1.35 and later, which Kubernetes documents at the parser of its kubelet.
var _ = describeIf(quotedForm, "the value is what", func(f *framework.Framework) {
	ginkgo.DescribeTable("VAR='VALUE' says:", func(ctx context.Context, content string, want map[string]string) {
		expectValues(ctx, f, content, want)
	},
		ginkgo.Entry("nothing between the quotes is the empty string, and set",
			"A=''\nB= \n", map[string]string{"A": "", "B": ""}),
		ginkgo.Entry("white space after the equals sign ends the value",
			"A= '1'\nB=\t2\nC='3'\n", map[string]string{"A": "", "B": "", "C": "3"}),
		ginkgo.Entry("the last definition of a name wins",
			"A='1'\nB='2'\nA='3'\n", map[string]string{"A": "3", "B": "2"}),
		ginkgo.Entry("everything between the quotes is literal",
			`A=' "q" $HOME ${HOME} $(HOME) $$ \n # = '`+"\n",
			map[string]string{"A": ` "q" $HOME ${HOME} $(HOME) $$ \n # = `}),
		ginkgo.Entry("a value goes over several lines",
			"A='one\n  two\\\nB=3\n'\nC='4'\n", map[string]string{"A": "one\n  two\\\nB=3\n", "C": "4"}),
		ginkgo.Entry("a comment may follow the quote that ends a value",
			"A='1' # 'comment'\nB='2'#\n", map[string]string{"A": "1", "B": "2"}),
		ginkgo.Entry("white space before a name, blank lines and comments are ignored",
			"# A='comment'\n\n \t\n  # A='indented comment'\n \tA='1'\n", map[string]string{"A": "1"}),
		ginkgo.Entry("lines may end as they do on Windows",
			"A='1'\r\n\r\n# comment\r\nB='2\r\n3'\r\n", map[string]string{"A": "1", "B": "2\n3"}),
		ginkgo.Entry("the last line needs no line ending",
			"A='1'\nB='2'", map[string]string{"A": "1", "B": "2"}),
		ginkgo.Entry("a value may be any UTF-8",
			"A='grüße, 世界 🌍'\n", map[string]string{"A": "grüße, 世界 🌍"}),
		ginkgo.Entry("a value may have 32 KiB",
			"A='"+strings.Repeat("x", 32<<10)+"'\n", map[string]string{"A": strings.Repeat("x", 32<<10)}),
	)
})

// expectValues checks what a container sees of the keys of want in a file with content.
func expectValues(ctx context.Context, f *framework.Framework, content string, want map[string]string) {
	ginkgo.GinkgoHelper()
	var env []v1.EnvVar
	for key := range want {
		env = append(env, from(key, "config.env", key))
	}
	pod := newPod("syntax", writesBytes("config.env", content), pods.Dumps(consumer, env...))
	pods.RunToEnd(ctx, f, pod)

	got := pods.Env(ctx, f, pod.Name, consumer)
	for key, value := range want {
		gomega.Expect(got).To(gomega.HaveKeyWithValue(key, value))
	}
}
