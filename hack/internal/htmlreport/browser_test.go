package htmlreport

import (
	"context"
	"encoding/json"
	"fmt"
	htmlpkg "html"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/run"
)

// browser returns Chromium, which it installs if it can.
func browser(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("chromium"); err == nil {
		return path
	}
	if err := debian.ThisUser().EnsureInstalled(t.Context(), nil, "chromium"); err != nil {
		t.Skipf("THE PAGE IS NOT TESTED IN A BROWSER: %v", err)
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// measure is a page that shows another one at two widths, with all folds open, and measures it. The page
// itself may run no script.
const measure = `<!DOCTYPE html><meta charset="utf-8"><body><pre id="out"></pre><script>
const page = %s, widths = [360, 1440], out = []
async function at(width) {
  const frame = document.createElement("iframe")
  frame.style.cssText = "border: 0; height: 800px; width: " + width + "px"
  frame.srcdoc = page
  const loaded = new Promise(done => frame.onload = done)
  document.body.append(frame)
  await loaded
  const doc = frame.contentDocument, root = doc.documentElement
  const folds = [...doc.querySelectorAll("details")]
  for (const fold of folds) { if (!fold.open) fold.querySelector("summary").click() }
  await new Promise(done => setTimeout(done, 50))
  const links = [...doc.querySelectorAll("a")]
  out.push({
    width, clientWidth: root.clientWidth, scrollWidth: root.scrollWidth, height: root.scrollHeight,
    folds: folds.length, closed: folds.filter(fold => !fold.open || fold.lastElementChild.getBoundingClientRect().height < 1).length,
    broken: links.map(link => link.getAttribute("href")).filter(href => !href.startsWith("#") || !doc.getElementById(href.slice(1))),
    requests: frame.contentWindow.performance.getEntriesByType("resource").length,
    headers: [...doc.querySelectorAll("th")].filter(th => !th.hasAttribute("scope")).length,
    wide: [...doc.querySelectorAll("body *")].filter(e => !e.closest(".scroll, .track, pre") && e.getBoundingClientRect().right > width + 1).map(e => e.outerHTML.slice(0, 100)),
    breaks: [...doc.querySelectorAll("main > pre")].map(pre => pre.scrollWidth <= pre.clientWidth),
    alone: [...doc.querySelectorAll("td summary")].filter(s => s.firstElementChild.getClientRects()[0].top > s.getBoundingClientRect().top + 15).length,
    styled: frame.contentWindow.getComputedStyle(doc.body).backgroundColor,
  })
}
(async () => { for (const width of widths) await at(width); document.getElementById("out").textContent = JSON.stringify(out); document.title = "done" })()
</script>`

func TestInABrowser(t *testing.T) {
	chromium := browser(t)
	dir := t.TempDir()
	// JSON in a script must not end it.
	page, err := json.Marshal(html(t, example(t))) // it escapes <
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "measure.html")
	write(t, file, fmt.Sprintf(measure, page))
	seen := map[string]bool{}
	for scheme, flag := range map[string]string{"light": "--blink-settings=preferredColorScheme=1", "dark": "--blink-settings=preferredColorScheme=0"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		dom, err := run.Command(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+filepath.Join(dir, scheme),
			"--virtual-time-budget=10000", flag, "--dump-dom", "file://"+file).Output()
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(`<pre id="out">(.+?)</pre>`).FindStringSubmatch(dom)
		if match == nil {
			t.Fatalf("nothing was measured: %.500s", dom)
		}
		var all []struct {
			Width, ClientWidth, ScrollWidth, Height, Folds, Closed, Requests, Headers, Alone int
			Broken, Wide                                                                     []string
			Breaks                                                                           []bool
			Styled                                                                           string
		}
		if err := json.Unmarshal([]byte(htmlpkg.UnescapeString(match[1])), &all); err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 {
			t.Fatalf("measured %d times", len(all))
		}
		for _, m := range all {
			if m.ScrollWidth > m.ClientWidth || m.ClientWidth > m.Width || len(m.Wide) > 0 {
				t.Errorf("%s: at %d pixels the page is %d wide: %s", scheme, m.Width, m.ScrollWidth, strings.Join(m.Wide, "\n"))
			}
			if m.Folds < 5 || m.Closed > 0 {
				t.Errorf("%s: %d of %d folds do not open", scheme, m.Closed, m.Folds)
			}
			if len(m.Broken) > 0 || m.Requests > 0 || m.Headers > 0 {
				t.Errorf("%s: broken links %q, %d requests, %d table headers without scope", scheme, m.Broken, m.Requests, m.Headers)
			}
			if !slices.Equal(m.Breaks, []bool{true, false}) || m.Alone > 0 {
				t.Errorf("%s: at %d pixels lines of the text and of the table are broken: %v; %d signs that unfold are on a line of their own", scheme, m.Width, m.Breaks, m.Alone)
			}
			seen[m.Styled] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("the two schemes have the backgrounds %v", seen)
	}
}
