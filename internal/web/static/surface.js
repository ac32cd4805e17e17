// What the graph and the time line are drawn on: a canvas that is moved and enlarged with mouse, touch and keys, and is drawn anew only when something
// changed; the colours of the page, and a mark for each state, which tells states apart without the colours.

import { word } from './words.js';

export const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

// h makes an element. Attributes that begin with "on" are listeners.
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

export const number = (n) => n.toLocaleString('en');
export const plural = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;

// titled is what a task is called, with what it is for if it is an item of a foreach.
export const titled = (name, label) => (label ? `${name} (${label})` : name);

// styled resolves when graph.css counts.
export function styled() {
  const url = new URL('graph.css', import.meta.url).href;
  const there = [...document.styleSheets].some((s) => s.href === url);
  if (there) return Promise.resolve();
  return new Promise((done) => {
    const link = h('link', { rel: 'stylesheet', href: url, onload: done, onerror: done });
    document.head.append(link);
  });
}

export const STATES = ['held', 'queued', 'claimed', 'running', 'succeeded', 'failed', 'terminated', 'cancelled', 'skipped', 'orphaned', 'allowed', 'unknown'];
// What most needs to be looked at comes first: it stands for a group.
export const URGENT = ['failed', 'terminated', 'orphaned', 'allowed', 'running', 'claimed', 'queued', 'cancelled', 'unknown', 'held', 'succeeded', 'skipped'];

const ALIKE = 8; // characters that names have in common which are told apart by what follows

// differs tells of each name where it begins to differ from those that begin as it does, and from the one that is most like it: each time at the
// beginning of a word.
export function differs(names) {
  const at = new Map(), sorted = [...new Set(names)].sort();
  const shared = sorted.map((name, i) => { // with the name before
    let n = 0;
    if (i > 0) while (n < name.length && name[n] === sorted[i - 1][n]) n++;
    return n;
  });
  const word = (name, n) => {
    for (const end = Math.max(n - 12, 0); n > end && /[\p{L}\p{N}]/u.test(name[n - 1]); n--);
    return n;
  };
  for (let from = 0, to; from < sorted.length; from = to) {
    for (to = from + 1; to < sorted.length && shared[to] >= ALIKE; to++);
    const all = to - from > 1 ? Math.min(...shared.slice(from + 1, to)) : 0;
    for (let i = from; i < to; i++) {
      const one = Math.max(i > from ? shared[i] : 0, i + 1 < to ? shared[i + 1] : 0);
      at.set(sorted[i], [word(sorted[i], all), word(sorted[i], one)]);
    }
  }
  return names.map((name) => at.get(name));
}

// shorten cuts a name to what there is room for, so that it keeps its end, and what it has from the given places on, where it differs from others.
export function shorten(c, name, room, places) {
  const fits = (text) => c.measureText(text).width <= room;
  if (fits(name)) return name;
  const longest = (most, cut) => { // how long the longest of these is that fits
    let low = 0, high = most;
    while (low < high) {
      const n = (low + high + 1) >> 1;
      if (fits(cut(n))) low = n;
      else high = n - 1;
    }
    return low;
  };
  const ends = (text) => (n) => `${text.slice(0, Math.ceil(n * 0.6))}…${text.slice(text.length - Math.floor(n * 0.4))}`;
  const most = longest(name.length, ends(name)), head = Math.ceil(most * 0.6), tail = Math.floor(most * 0.4);
  const [all, one] = places;
  if (all < head || name.length - all <= tail) return ends(name)(most);
  for (const at of [all, one]) {
    const cut = (n) => `${name.slice(0, n)}…${name.slice(at)}`;
    if (fits(cut(0))) return cut(longest(at, cut));
  }
  const cut = (n) => `…${ends(name.slice(one))(n)}`;
  return cut(longest(name.length - one, cut));
}

// palette reads the colours that hold for the element now.
export function palette(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  const p = { states: {}, font: style.fontFamily };
  for (const name of ['bg', 'box', 'line', 'strong', 'text', 'soft', 'focus', 'hot']) p[name] = read(`--draw-${name}`);
  for (const s of STATES) p.states[s] = read(`--state-${s}`);
  return p;
}

// mark draws the mark of a state around a point.
export function mark(c, state, x, y, r, colour, ground) {
  c.save();
  c.translate(x, y);
  c.scale(r / 8, r / 8);
  c.fillStyle = c.strokeStyle = colour;
  c.lineWidth = 2;
  c.lineCap = c.lineJoin = 'round';
  const disc = (radius) => { c.beginPath(); c.arc(0, 0, radius, 0, 7); };
  const line = (...points) => {
    c.beginPath();
    for (let i = 0; i < points.length; i += 2) (i ? c.lineTo : c.moveTo).call(c, points[i], points[i + 1]);
    c.stroke();
  };
  switch (state) {
    case 'succeeded': disc(7); c.fill(); c.strokeStyle = ground; line(-3.4, 0.3, -1.1, 2.6, 3.4, -2.3); break;
    case 'failed': case 'allowed': disc(7); c.fill(); c.strokeStyle = ground; line(-2.6, -2.6, 2.6, 2.6); line(2.6, -2.6, -2.6, 2.6); break;
    case 'terminated': c.beginPath(); c.roundRect(-6, -6, 12, 12, 2.5); c.fill(); c.fillStyle = ground; c.fillRect(-2.4, -2.4, 4.8, 4.8); break;
    case 'running': disc(6); c.stroke(); c.beginPath(); c.moveTo(-1.8, -3); c.lineTo(-1.8, 3); c.lineTo(3.2, 0); c.fill(); break;
    case 'claimed': disc(6); c.stroke(); disc(2.2); c.fill(); break;
    case 'queued': disc(6); c.stroke(); break;
    case 'held': c.lineCap = 'butt'; c.setLineDash([2.2, 2.51]); disc(6); c.stroke(); break;
    case 'skipped': line(-5, -4, -1, 0, -5, 4); line(0.5, -4, 4.5, 0, 0.5, 4); break;
    case 'cancelled': disc(6); c.stroke(); line(-4, 4, 4, -4); break;
    default: c.beginPath(); c.moveTo(0, -7.5); c.lineTo(7.5, 0); c.lineTo(0, 7.5); c.lineTo(-7.5, 0); c.fill(); c.strokeStyle = ground; line(0, -3.4, 0, 0.6); line(0, 3.2, 0, 3.3);
  }
  c.restore();
}

// badge is a mark as an element, for legends. paint draws it in the colours of the page.
export function badge(state) {
  const e = h('canvas', { width: 32, height: 32, class: 'mark', 'aria-hidden': 'true' });
  e.paint = (p) => {
    const c = e.getContext('2d');
    c.clearRect(0, 0, 32, 32);
    mark(c, state, 16, 16, 14, p.states[state], p.bg);
  };
  return e;
}

// legend lists states with how many there are of each; a click chooses one, again none. only(state or null) is told.
export function legend(only, counted = true) {
  const list = h('ul', { class: 'legend-states', 'aria-label': 'Tasks by state; choose one to see where it is' });
  const items = new Map();
  let chosen = null;
  for (const s of STATES) {
    const count = h('span', { class: 'n' });
    const sign = badge(s);
    const button = h('button', {
      type: 'button', 'aria-pressed': 'false', onclick: () => {
        chosen = chosen === s ? null : s;
        for (const [name, i] of items) i.button.setAttribute('aria-pressed', String(name === chosen));
        only(chosen);
      },
    }, sign, word(s), ' ', count);
    const item = h('li', { hidden: true }, button);
    items.set(s, { item, count, sign, button });
    list.append(item);
  }
  return {
    element: list,
    set(counts) { // by the index of STATES
      STATES.forEach((s, i) => {
        const { item, count } = items.get(s);
        item.hidden = !counts[i] && s !== chosen;
        const text = counted ? number(counts[i] || 0) : '';
        if (count.textContent !== text) count.textContent = text;
      });
    },
    paint(p) { for (const { sign } of items.values()) sign.paint(p); },
  };
}

// A surface shows a part of a world of its own coordinates: view.x and view.y are what is at the left and the top of it, view.kx and view.ky pixels
// per unit. What is asked of who uses it: world() → {width, height}, draw(c, size), and, where there is, press(x, y), hover(x, y) of pixels, null at
// the end, key(event) → handled, moved(). limits: {least, most} of kx. across: only x is enlarged.
export class Surface {
  constructor(element, label, use) {
    this.use = use;
    this.view = { x: 0, y: 0, kx: 1, ky: 1 };
    this.size = { width: 0, height: 0 };
    this.margin = 24;
    this.canvas = h('canvas', { class: 'surface', tabindex: '0', role: 'application', 'aria-label': label });
    element.append(this.canvas);
    this.c = this.canvas.getContext('2d');
    this.colours = palette(element);
    this.pointers = new Map();
    this.frame = 0;
    this.off = new AbortController();
    const on = (target, type, f, options) => target.addEventListener(type, f, { signal: this.off.signal, ...options });
    const e = this.canvas;
    on(e, 'pointerdown', (ev) => this.down(ev));
    on(e, 'pointermove', (ev) => this.move(ev));
    on(e, 'pointerup', (ev) => this.up(ev));
    on(e, 'pointercancel', (ev) => this.up(ev, true));
    on(e, 'pointerleave', () => { if (!this.pointers.size) this.use.hover?.(null); });
    on(e, 'wheel', (ev) => this.wheel(ev), { passive: false });
    on(e, 'keydown', (ev) => this.key(ev));
    on(e, 'focus', () => this.redraw());
    on(e, 'blur', () => this.redraw());
    const recolour = () => {
      this.colours = palette(element);
      this.use.recoloured?.(this.colours);
      this.redraw();
    };
    for (const q of ['(prefers-color-scheme: dark)', '(prefers-contrast: more)', '(forced-colors: active)']) on(matchMedia(q), 'change', recolour);
    this.themes = new MutationObserver(recolour);
    this.themes.observe(document.documentElement, { attributes: true });
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(e);
    this.above = new ResizeObserver(() => requestAnimationFrame(() => this.lower())); // afterwards: it changes the size of what is watched
    this.above.observe(document.body);
    on(window, 'resize', () => this.lower());
    this.lower();
    this.resize();
  }

  destroy() {
    this.off.abort();
    this.themes.disconnect();
    this.sizes.disconnect();
    this.above.disconnect();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.gliding);
    this.canvas.remove();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = Math.min(devicePixelRatio || 1, 3);
    if (!width || !height || (width === this.size.width && height === this.size.height && ratio === this.ratio)) return;
    const first = !this.size.width;
    this.size = { width, height };
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    if (!first) this.clamp();
    this.use.resized?.(first);
    this.paint(); // at once: setting its size cleared it
  }

  // lower says how high the canvas may be for its lower edge to be that of the window.
  lower() {
    const room = Math.floor(innerHeight - this.canvas.getBoundingClientRect().top - scrollY) - 16;
    if (room === this.room) return;
    this.room = room;
    this.canvas.style.setProperty('--draw-room', `${room}px`);
  }

  // tall says how high the canvas is to be at most: what is small needs no large one.
  tall(pixels) {
    this.canvas.style.setProperty('--draw-height', `${Math.ceil(pixels)}px`);
    this.resize();
  }

  redraw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.size.width) return;
    const c = this.c;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.globalAlpha = 1;
    c.fillStyle = this.colours.bg;
    c.fillRect(0, 0, this.size.width, this.size.height);
    this.use.draw(c, this.size);
  }

  // clamp keeps something of the world to be seen, and reports whether it had to.
  clamp() {
    const { width, height } = this.use.world(), v = this.view, m = this.margins();
    const keep = (at, world, k, room, before, after, pinned) => {
      if (world * k + before + after <= room) { // all of it is seen: anywhere within
        return pinned ? -before / k : Math.min(Math.max(at, world - (room - after) / k), -before / k);
      }
      return Math.min(Math.max(at, -before / k), world - (room - after) / k);
    };
    v.x = keep(v.x, width, v.kx, this.size.width, m.left, m.right, this.use.across);
    v.y = keep(v.y, height, v.ky, this.size.height, m.top, m.bottom, this.use.across);
  }

  margins() {
    const m = this.margin;
    return this.use.margins?.() || { left: m, right: m, top: m, bottom: m };
  }

  changed() {
    this.clamp();
    this.use.moved?.();
    this.redraw();
  }

  // pan moves what is seen by pixels, and reports whether anything moved.
  pan(dx, dy) {
    this.stop();
    const { x, y } = this.view;
    this.view.x += dx / this.view.kx;
    this.view.y += dy / this.view.ky;
    this.changed();
    return Math.abs(this.view.x - x) * this.view.kx > 0.5 || Math.abs(this.view.y - y) * this.view.ky > 0.5;
  }

  // zoom enlarges around a point of the canvas, its middle by default.
  zoom(factor, x = this.size.width / 2, y = this.size.height / 2) {
    this.stop();
    const v = this.view, { least, most } = this.use.limits();
    const k = Math.min(Math.max(v.kx * factor, least), most);
    const wx = v.x + x / v.kx, wy = v.y + y / v.ky;
    v.kx = k;
    if (!this.use.across) v.ky = k;
    v.x = wx - x / v.kx;
    v.y = wy - y / v.ky;
    this.changed();
  }

  // glide shows another view, and goes there where motion is welcome.
  glide(to) {
    this.stop();
    const from = { ...this.view }, began = performance.now();
    const step = (now) => {
      const t = still() ? 1 : Math.min(Math.max(now - began, 0) / 160, 1), ease = 1 - (1 - t) ** 3;
      for (const name of Object.keys(to)) this.view[name] = from[name] + (to[name] - from[name]) * ease;
      this.changed();
      this.gliding = t < 1 ? requestAnimationFrame(step) : 0;
    };
    if (still()) step(began);
    else this.gliding = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.gliding);
    this.gliding = 0;
  }

  // reveal glides so far that a rectangle of the world is seen.
  reveal(x, y, width, height) {
    const v = this.view, m = this.margins();
    const need = (at, from, length, k, room, before, after) => {
      if (from + length > at + (room - after) / k) at = from + length - (room - after) / k;
      if (from < at + before / k) at = from - before / k;
      return at;
    };
    const to = { x: need(v.x, x, width, v.kx, this.size.width, m.left, m.right), y: need(v.y, y, height, v.ky, this.size.height, m.top, m.bottom) };
    if (to.x !== v.x || to.y !== v.y) this.glide(to);
  }

  at(ev) {
    const r = this.canvas.getBoundingClientRect();
    return { x: ev.clientX - r.left, y: ev.clientY - r.top };
  }

  down(ev) {
    if (ev.button > 0) return;
    this.stop();
    this.canvas.setPointerCapture(ev.pointerId);
    this.pointers.set(ev.pointerId, this.at(ev));
    this.travelled = this.pointers.size > 1 ? Infinity : 0;
    this.use.hover?.(null);
  }

  move(ev) {
    const now = this.at(ev), was = this.pointers.get(ev.pointerId);
    if (!was) {
      if (!this.pointers.size && ev.pointerType !== 'touch') this.use.hover?.(now.x, now.y);
      return;
    }
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== ev.pointerId)[1];
      const spread = (p) => Math.max(Math.hypot(p.x - other.x, p.y - other.y), 1);
      const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
      this.zoom(spread(now) / spread(was), middle.x, middle.y);
      this.pan((was.x - now.x) / 2, (was.y - now.y) / 2);
    } else {
      this.travelled += Math.hypot(now.x - was.x, now.y - was.y);
      if (this.travelled > 4) {
        this.canvas.classList.add('dragged');
        this.pan(was.x - now.x, was.y - now.y);
      }
    }
    this.pointers.set(ev.pointerId, now);
  }

  up(ev, gone) {
    if (!this.pointers.delete(ev.pointerId)) return;
    this.canvas.classList.remove('dragged');
    if (!gone && !this.pointers.size && this.travelled <= 4) {
      const { x, y } = this.at(ev);
      this.use.press?.(x, y, ev);
    }
  }

  wheel(ev) {
    const unit = ev.deltaMode === 1 ? 16 : ev.deltaMode === 2 ? this.size.height : 1;
    const { x, y } = this.at(ev);
    if (ev.ctrlKey || ev.metaKey) {
      ev.preventDefault();
      this.zoom(Math.exp(-Math.max(Math.min(ev.deltaY * unit, 200), -200) / 240), x, y);
      return;
    }
    const across = ev.shiftKey && !ev.deltaX;
    const moved = this.pan((across ? ev.deltaY : ev.deltaX) * unit, across ? 0 : ev.deltaY * unit);
    if (moved) ev.preventDefault(); // at its end the page scrolls on
    this.use.hover?.(x, y);
  }

  key(ev) {
    if (ev.ctrlKey || ev.metaKey || ev.altKey) return;
    if (this.use.key?.(ev)) {
      ev.preventDefault();
      return;
    }
    const step = 80;
    switch (ev.key) {
      case 'ArrowLeft': this.pan(-step, 0); break;
      case 'ArrowRight': this.pan(step, 0); break;
      case 'ArrowUp': this.pan(0, -step); break;
      case 'ArrowDown': this.pan(0, step); break;
      case 'PageUp': this.pan(0, -this.size.height * 0.8); break;
      case 'PageDown': this.pan(0, this.size.height * 0.8); break;
      case '+': case '=': this.zoom(1.3); break;
      case '-': case '_': this.zoom(1 / 1.3); break;
      case 'f': case '0': this.use.fit(); break;
      default: return;
    }
    ev.preventDefault();
  }
}

// tools are the buttons of a surface.
export function tools(s) {
  const button = (label, text, f) => h('button', { type: 'button', 'aria-label': label, title: label, onclick: f }, text);
  return h('div', { class: 'draw-tools', role: 'group', 'aria-label': 'Size' },
    button('− Smaller (-)', '−', () => s.zoom(1 / 1.4)), button('+ Larger (+)', '+', () => s.zoom(1.4)), button('Fit all (f)', 'Fit', () => s.use.fit()));
}

// refresher calls load soon, and at most once a second, or, where that takes long, four times as long; never two at once.
export function refresher(load) {
  let timer = 0, busy = false, again = false, next = 0, over = false;
  async function run() {
    timer = 0;
    busy = true;
    again = false;
    const began = performance.now();
    try {
      await load();
    } catch { /* the next change asks again */ }
    busy = false;
    next = performance.now() + Math.max(1000, 4 * (performance.now() - began));
    if (again) ask();
  }
  function ask() {
    if (over) return;
    if (busy) again = true;
    else if (!timer) timer = setTimeout(run, Math.max(100, next - performance.now()));
  }
  ask.end = () => { over = true; clearTimeout(timer); };
  return ask;
}

const ENDED = ['succeeded', 'failed', 'cancelled', 'abandoned'];

// follow asks for a refresh where changes may have been missed: soon after the beginning, since events are listened to from a moment after what is
// shown was read, when the page is seen again, and now and then, as long as the plan goes on. It returns what is to be told of each change, and the end.
export function follow(plan, refresh) {
  let over = ENDED.includes(plan.state);
  const seen = () => { if (!document.hidden) refresh(); };
  const soon = over ? 0 : setTimeout(refresh, 1500);
  const often = setInterval(() => { if (!over) seen(); }, 10000);
  document.addEventListener('visibilitychange', seen);
  return {
    change(c) { if (!c.task) over = ENDED.includes(c.state); },
    end() {
      clearTimeout(soon);
      clearInterval(often);
      document.removeEventListener('visibilitychange', seen);
    },
  };
}

// far says how far a task is that told it.
export const far = (progress) => (progress ? `${Math.floor(progress.fraction * 100 + 1e-9)}%${progress.text ? ` ${progress.text}` : ''}` : '');

// span writes milliseconds for people.
export function span(ms) {
  if (ms < 0.95) return ms > 0 ? '<1 ms' : '0 s';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1).replace(/\.0$/, '')} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  const minutes = Math.floor(Math.round(s) / 60), rest = Math.round(s) % 60;
  if (minutes < 60) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
