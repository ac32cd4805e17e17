// How pages make what they show. Text from outside (names, outputs, logs) is only ever a text node or an attribute of ours, never HTML: nothing
// here, or anywhere in these pages, parses a string into elements.

import { store } from './session.js';

// h makes an element: h('a', {href, class, onclick, 'aria-label': …}, children…). Children are nodes, text, lists of these, or nothing.
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  setProps(e, props);
  add(e, children);
  return e;
}

const SVG = 'http://www.w3.org/2000/svg';

// svg is h for drawings.
export function svg(tag, props, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props || {})) e.setAttribute(name, value);
  add(e, children);
  return e;
}

function setProps(e, props) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') e.addEventListener(name.slice(2), value);
    else if (name === 'class') e.className = value;
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected') e[name] = value;
    else e.setAttribute(name, value === true ? '' : String(value));
  }
}

function add(e, children) {
  for (const c of children) {
    if (c === undefined || c === null || c === false) continue;
    if (Array.isArray(c)) add(e, c);
    else e.append(c);
  }
}

// fill replaces what is in an element.
export function fill(e, ...children) {
  const all = document.createDocumentFragment();
  add(all, children);
  e.replaceChildren(all);
  return e;
}

// put sets an element's text where it is another one, so that what is read or selected stays.
export function put(e, text) {
  text = text === undefined || text === null ? '' : String(text);
  if (e.textContent !== text) e.textContent = text;
}

// labelled is what a task is called, and of an item of a foreach what it is for, as commands write it: copy[3] (dave). fullName is that as text.
export const fullName = (t) => `${t.name || t.id}${t.item_label ? ` (${t.item_label})` : ''}`;
export const labelled = (t) => [t.name || t.id, t.item_label && h('span', { class: 'of' }, ` (${t.item_label})`)];

// href joins the parts of a path below /ui/, each of them written so that it stays one part.
export const href = (...parts) => '/ui/' + parts.map(encodeURIComponent).join('/');

const whole = new Intl.NumberFormat();
export const number = (n) => whole.format(n);

// plural: 1 task, 2 tasks, 12,000 tasks.
export const plural = (n, one, many = one + 's') => `${number(n)} ${n === 1 ? one : many}`;

// A clock that goes as the server's does: durations of what runs are by its times.
let ahead = 0;
export function setClock(now) { ahead = new Date(now).getTime() - Date.now(); }
let stopped = 0; // when the server was last known to answer; 0: it does
export function stopClock(stop) { stopped = stop ? stopped || Date.now() : 0; }
export const serverNow = () => (stopped || Date.now()) + ahead;

export function duration(ms) {
  if (!(ms >= 0)) return '';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// between is how long something took, or takes.
export function between(from, to) {
  if (!from) return '';
  return duration((to ? new Date(to).getTime() : serverNow()) - new Date(from).getTime());
}

export function ago(at) {
  if (!at) return '';
  const s = Math.max(0, (serverNow() - new Date(at).getTime()) / 1000);
  if (s < 60) return 'just now';
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  if (s < 30 * 86400) return `${Math.floor(s / 86400)} d ago`;
  return dateOnly.format(new Date(at));
}

const dateOnly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clockOnly = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
export const clock = (at) => (at ? clockOnly.format(new Date(at)) : '');
export const instant = (at) => (at ? exact.format(new Date(at)) : '');

// pretty is a JSON value as people read it.
export const pretty = (value) => JSON.stringify(value, null, 2);

// folded shows text that may be long: its first lines, and all of it on demand.
export function folded(text, { lines = 24, label = 'value' } = {}) {
  const all = text.split('\n');
  const pre = h('pre', { class: 'code', tabindex: '0', 'aria-label': label });
  const framed = h('div', { class: 'framed' }, pre, copyIcon(() => text, label));
  if (all.length <= lines && text.length <= 8000) {
    fill(pre, text);
    return framed;
  }
  const some = all.slice(0, lines).join('\n').slice(0, 8000);
  let open = false;
  const more = h('button', { class: 'quiet', type: 'button', 'aria-expanded': 'false', onclick: toggle });
  function toggle() {
    open = !open;
    render();
  }
  function render() {
    pre.textContent = open ? text : some + '\n…';
    more.textContent = open ? 'Show less' : `Show all ${plural(all.length, 'line')}`;
    more.setAttribute('aria-expanded', String(open));
  }
  render();
  return h('div', { class: 'folded' }, framed, h('div', { class: 'row' }, more));
}

// copy puts text on the clipboard. Where the page came over plain http from another host there is no clipboard but the old way.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const t = h('textarea', { class: 'off', 'aria-hidden': 'true', value: text });
  document.body.append(t);
  const had = document.activeElement;
  t.select();
  const copied = document.execCommand('copy');
  t.remove();
  had?.focus({ preventScroll: true });
  if (!copied) throw new Error('not copied');
}

const paths = { copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z', done: 'M3 8.5l3.4 3.4L13 4.6', not: 'M4 4l8 8M12 4l-8 8' };
const glyph = (name) => svg('svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true' },
  svg('path', { d: paths[name], fill: 'none', stroke: 'currentColor', 'stroke-width': '1.4', 'stroke-linecap': 'round', 'stroke-linejoin': 'round' }));

// copyIcon is a button that copies text(), which is called what.
export function copyIcon(text, what) {
  let timer = 0;
  const b = h('button', { class: 'quiet copy', type: 'button', onclick: () => copy(text()).then(() => say('done', 'Copied'), () => say('not', 'Not copied: select it and copy it by hand')) });
  function say(name, words) {
    fill(b, glyph(name));
    b.title = words;
    b.setAttribute('aria-label', words);
    clearTimeout(timer);
    if (name !== 'copy') timer = setTimeout(rest, 1500);
  }
  const rest = () => say('copy', `Copy ${what}`);
  rest();
  return b;
}

// copied is a short text that others ask for, as an id, with a button that copies it.
export const copied = (text, what) => h('span', { class: 'copied' }, h('code', {}, text), copyIcon(() => text, what));

// empty says what is not there, why, and what to do.
export const empty = (title, ...more) => h('div', { class: 'empty' }, h('p', { class: 'strong' }, title), ...more);

// quoted is a word as a shell takes it.
export const quoted = (word) => (/^[\w@%+=:,./#-]+$/.test(word) && !word.startsWith('#') ? word : `'${word.replaceAll("'", `'\\''`)}'`);

// placed adds to a command what names this server, as who reads it reaches it; where it runs a node, which needs the store itself, that.
export function placed(line) {
  if (/ --(store|config) /.test(line)) return line;
  line = line.replace(/ --server \S+$/, '');
  return /^sluice (worker|den|plan run)\b/.test(line) ? `${line} --store ${quoted(store())}` : `${line} --server ${location.origin}`;
}

// command is a line for a shell.
export function command(line) {
  line = placed(line);
  return h('div', { class: 'command' }, h('code', {}, line), copyIcon(() => line, 'the command'), / --store URI$/.test(line) && h('span', { class: 'muted' }, 'URI: the store that this server is for'));
}

// errorBox is a problem as people see it.
export const errorBox = (p, again) => h('div', { class: 'error', role: 'alert' },
  h('p', { class: 'strong' }, p.title || 'That did not work'), h('p', {}, p.detail || String(p)),
  again && h('button', { type: 'button', onclick: again }, 'Try again'));

// debounce calls f once it has not been asked to for some time.
export function debounce(f, ms) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), ms);
  };
}

// throttle calls f at once, and then at most each ms as long as it is asked to, a last time included.
export function throttle(f, ms) {
  let timer = 0, again = false;
  return function call() {
    if (timer) { again = true; return; }
    f();
    timer = setTimeout(() => {
      timer = 0;
      if (again) { again = false; call(); }
    }, ms);
  };
}

// headings names the columns of a list, for who sees them: each row says itself what its parts are.
export const headings = (kind, words) => h('div', { class: `heads ${kind}`, 'aria-hidden': 'true' }, words.map((w) => h('span', {}, Array.isArray(w) ? w.map((x) => h('span', {}, x)) : w)));

// arrange makes an element's children these, and moves none that stands where it should: what has the focus keeps it.
export function arrange(e, children) {
  const wanted = new Set(children);
  for (const c of [...e.children]) if (!wanted.has(c)) c.remove();
  children.forEach((c, i) => { if (e.children[i] !== c) e.insertBefore(c, e.children[i] || null); });
}
