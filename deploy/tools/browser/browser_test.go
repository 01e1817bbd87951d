package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// action is something that a browser does.
type action = chromedp.Action[chromedp.Void]

// command makes a command of the browser's protocol an action.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// startBrowser starts Chromium with a profile of its own, which is gone after the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], // headless, nothing in the background
		chromedp.ExecPath(tool(t, "CHROMIUM", "chromium")),
		chromedp.NoSandbox, // root has none
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 800),
	)
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		cancel()
		cancelAllocator()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return ctx
}

// tool returns the path of a program: that of the environment variable, or of PATH.
func tool(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not set and %s is not in PATH", variable, name)
	}
	return path
}

// tab is a tab of the browser, with a profile of its own. What no page may do fails the test: an error or a warning in the
// console, an exception, what the Content-Security-Policy forbids, a request to another origin.
type tab struct {
	*testing.T
	ctx    context.Context
	origin string

	mu     sync.Mutex
	faults []string
	lost   bool // that requests fail is expected
}

// open opens a path of a daemon in a new tab, after some preparations.
func open(t *testing.T, browser context.Context, origin, path string, prepare ...action) *tab {
	t.Helper()
	b := &tab{T: t, origin: origin}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.watch))
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		for _, fault := range b.faults {
			t.Error(fault)
		}
	})
	if err := chromedp.Do(ctx); err != nil { // the tab lives as long as the context of this call
		t.Fatal(err)
	}
	b.do(command(log.Enable, cdp.Empty{}))
	b.do(prepare...)
	b.visit(path)
	return b
}

// watch notes what no page may do.
func (b *tab) watch(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			fault = fmt.Sprintf("console: %s %s", e.Type, e.Args[0].Value)
		}
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			fault += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			fault = fmt.Sprintf("log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.origin+"/") {
			fault = "request to another origin: " + e.Request.URL
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if fault != "" && !(b.lost && strings.HasPrefix(fault, "log: network: Failed to load resource")) {
		b.faults = append(b.faults, fault)
	}
}

// lose says that the daemon is about to go away, so that requests fail.
func (b *tab) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = true
}

// do does actions in turn.
func (b *tab) do(actions ...action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// visit opens a path of the daemon.
func (b *tab) visit(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.origin + path))
}

// eval returns the value of an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits until an expression is true in a page that has been loaded, which may come after that of now.
func (b *tab) until(expression string) {
	b.Helper()
	b.within(patience, expression)
}

func (b *tab) within(limit time.Duration, expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	for {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && !!("+expression+")"))
		switch {
		case yes:
			return
		case ctx.Err() != nil:
			where, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
			b.Fatalf("not within %v: %s\nlast error: %v\nin %.3000s", limit, expression, err, where)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// press activates an element as Enter does. A mouse would have to hit it between two updates of the page.
func (b *tab) press(selector string) {
	b.Helper()
	b.until(fmt.Sprintf("document.querySelector(%q)", selector))
	eval[chromedp.Void](b, fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// keys types on the keyboard.
func (b *tab) keys(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// all returns the values of an attribute, of all elements that a selector finds.
func (b *tab) all(selector, attribute string) []string {
	b.Helper()
	return eval[[]string](b, fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.getAttribute(%q))", selector, attribute))
}

// text returns the text of an element.
func (b *tab) text(selector string) string {
	b.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector))
}

// What a tab can be prepared with.

// scheme is light or dark.
func scheme(name string) action {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
}

// phone is a screen of 360 px.
func phone() action {
	return chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch)
}

func withoutJavaScript() action {
	return command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}
