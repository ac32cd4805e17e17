// Package webtest drives the pages in a browser without a screen: Debian's chromium, by its debugging protocol. It is for tests and for the
// benchmark; nothing that is shipped imports it.
package webtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/web"
)

// ErrNoBrowser means that there is no chromium here.
var ErrNoBrowser = errors.New("chromium is not installed (Debian: apt-get install chromium)")

//go:embed drawing.js
var drawingJS []byte

const drawingHTML = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>drawing</title><link rel="stylesheet" href="/ui/style.css">
<main><div id="drawing"></div></main><script type="module" src="/drawing.js"></script></html>`

// Drawings serves the API, the pages, and at /drawing?module=M&plan=P a page that holds nothing but what static/M.js draws of plan P, under the
// policy of the pages.
func Drawings(rest http.Handler) http.Handler {
	pages := http.StripPrefix("/ui", web.New())
	mux := http.NewServeMux()
	mux.Handle(api.Root+"/", rest)
	mux.Handle(api.OSTERoot+"/", rest)
	mux.Handle("/ui/", pages)
	own := func(kind string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			strict := &headers{h: http.Header{}}
			pages.ServeHTTP(strict, r.Clone(r.Context()))
			w.Header().Set("Content-Security-Policy", strict.h.Get("Content-Security-Policy"))
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(body) // who asked may be gone
		}
	}
	mux.HandleFunc("GET /drawing", own("text/html; charset=utf-8", []byte(drawingHTML)))
	mux.HandleFunc("GET /drawing.js", own("text/javascript; charset=utf-8", drawingJS))
	return mux
}

// headers takes the headers of an answer and drops the rest.
type headers struct{ h http.Header }

func (h *headers) Header() http.Header         { return h.h }
func (h *headers) Write(p []byte) (int, error) { return len(p), nil }
func (h *headers) WriteHeader(int)             {}

// Browser starts a chromium with a page of that size, which end closes. It draws in software, as it does where there is no graphics card.
func Browser(ctx context.Context, width, height int) (page context.Context, end func(), err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, ErrNoBrowser
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height))
	all, stop := chromedp.NewExecAllocator(ctx, options...)
	page, closePage := chromedp.NewContext(all)
	end = func() { closePage(); stop() }
	if err := Resize(page, width, height, 1); err != nil {
		end()
		return nil, nil, fmt.Errorf("start chromium: %w", err)
	}
	return page, end, nil
}

// Resize sets the size of the page in pixels. Each of these is ratio pixels of the screen.
func Resize(page context.Context, width, height int, ratio float64) error {
	return chromedp.Do(page, chromedp.EmulateViewport(int64(width), int64(height), chromedp.EmulateScale(ratio)))
}

// Show goes to a page of [Drawings], and returns when it is drawn and answers, and how long after the beginning of the navigation that was.
func Show(page context.Context, url string) (time.Duration, error) {
	if err := chromedp.Do(page, chromedp.Navigate(url)); err != nil {
		return 0, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		ms, err := chromedp.Run(page, chromedp.Evaluate[float64]("window.drawn || 0"))
		if err != nil || ms > 0 {
			return time.Duration(ms * float64(time.Millisecond)), err
		}
		if time.Now().After(end) {
			text, err := chromedp.Run(page, chromedp.Evaluate[string]("String(window.failed || document.body.innerText)"))
			return 0, fmt.Errorf("%s was not drawn: %s, %w", url, text, err)
		}
	}
}

// Enlarge makes what is drawn so many times as large, around its middle.
func Enlarge(page context.Context, factor float64) error {
	_, err := chromedp.Run(page, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("view.surface.zoom(%v)", factor)))
	return err
}

// Pan drags the drawing with the mouse for the given time. It returns how many frames a second the
// page drew meanwhile, and how far the view moved in pixels.
func Pan(page context.Context, lasts time.Duration) (fps, moved float64, err error) {
	type rectangle struct{ X, Y, Width, Height float64 }
	box, err := chromedp.Run(page, chromedp.Evaluate[rectangle](`(() => { const r = document.querySelector('canvas.surface').getBoundingClientRect(); return {X: r.x, Y: r.y, Width: r.width, Height: r.height}; })()`))
	if err != nil {
		return 0, 0, err
	}
	if _, err := chromedp.Run(page, chromedp.Evaluate[chromedp.Void]("startFrames()")); err != nil {
		return 0, 0, err
	}
	mouse := func(kind input.DispatchMouseEventType, x, y float64) error {
		_, err := chromedp.Call(page, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: kind, X: box.X + x, Y: box.Y + y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1,
		})
		return err
	}
	step := 6.0
	for until := time.Now().Add(lasts); time.Now().Before(until); {
		x, y := box.Width/2, box.Height/2
		if err := mouse(input.DispatchMouseEventTypeMousePressed, x, y); err != nil {
			return 0, 0, err
		}
		for i := 0; i < 40 && time.Now().Before(until); i++ {
			x, y = x-step, y-step/3
			if err := mouse(input.DispatchMouseEventTypeMouseMoved, x, y); err != nil {
				return 0, 0, err
			}
			time.Sleep(8 * time.Millisecond) // as a mouse does, 125 times a second
		}
		if err := mouse(input.DispatchMouseEventTypeMouseReleased, x, y); err != nil {
			return 0, 0, err
		}
		step = -step
	}
	counted, err := chromedp.Run(page, chromedp.Evaluate[struct{ FPS, Moved float64 }]("endFrames()"))
	return counted.FPS, counted.Moved, err
}
