// A task's log: its lines as they come, with the colours that programs put into them. Escape sequences become classes of ours, and nothing else
// of them is heeded.
import { h, fill, put, clock, instant, plural, number, debounce } from './dom.js';
import { get } from './api.js';

const PAGE = 5000, MOST = 30000; // entries asked for at a time, and shown

const colours = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

// coloured takes a text with escape sequences apart into nodes. pen is what earlier text has set, and is changed.
export function coloured(text, pen = {}) {
  const out = [];
  const plain = (s) => {
    if (s === '') return;
    s = s.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, ''); // what no escape explains is shown as nothing
    const c = [pen.fg && `fg-${pen.fg}`, pen.bold && 'bold', pen.dim && 'dim', pen.under && 'under', pen.italic && 'italic'].filter(Boolean).join(' ');
    out.push(c ? h('span', { class: c }, s) : document.createTextNode(s));
  };
  // CSI …, OSC … up to its end, and the other escapes of one letter.
  const escape = /\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?/g;
  let from = 0;
  for (let m; (m = escape.exec(text));) {
    plain(text.slice(from, m.index));
    from = escape.lastIndex;
    if (m[2] === 'm') sgr(pen, m[1]);
    if (m[0] === '') break;
  }
  plain(text.slice(from));
  return out;
}

function sgr(pen, codes) {
  const all = codes === '' ? [0] : codes.split(/[;:]/).map(Number);
  for (let i = 0; i < all.length; i++) {
    const n = all[i];
    if (n === 0) for (const k of Object.keys(pen)) delete pen[k];
    else if (n === 1) pen.bold = true;
    else if (n === 2) pen.dim = true;
    else if (n === 3) pen.italic = true;
    else if (n === 4) pen.under = true;
    else if (n === 22) pen.bold = pen.dim = false;
    else if (n === 23) pen.italic = false;
    else if (n === 24) pen.under = false;
    else if (n >= 30 && n <= 37) pen.fg = colours[n - 30];
    else if (n >= 90 && n <= 97) pen.fg = colours[n - 90];
    else if (n === 39) pen.fg = '';
    else if (n === 38 || n === 48) { // of 256 colours the first 16 have names here
      if (n === 38 && all[i + 1] === 5) pen.fg = all[i + 2] < 16 ? colours[all[i + 2] % 8] : '';
      i += all[i + 1] === 5 ? 2 : all[i + 1] === 2 ? 4 : 0;
    }
  }
}

// ends reports whether an entry is the last of an attempt, after which they count anew: Sluice says so itself, since their numbers do not.
const ends = (e) => e.stream === 'system' && (e.attempt ? /^given back, since /.test(e.text) : /^retried by a person/.test(e.text));

// lost reports whether an entry says that its attempt was lost.
const lost = (e) => e.stream === 'system' && /^lost(?: with its node)?:/.test(e.text);

// lastAttempt returns the entries of the last attempt among those of a log, as they were printed: the streams of an attempt are stored in pieces.
export function lastAttempt(entries) {
  const of = entries.findLast((e) => e.attempt)?.attempt;
  let from = entries.length;
  while (from > 0 && (!entries[from - 1].attempt || entries[from - 1].attempt === of) && !ends(entries[from - 1])) from--;
  return entries.slice(from).sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

// log shows a task's log in an element, and follows it as long as running() says so; begun() says whether it ever began. told gets each attempt that it sees: {attempt, from, to, lines}.
export function log(element, id, { page, running, begun, told }) {
  const view = h('div', { class: 'log', tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': 'Log' });
  const end = h('button', { class: 'pill', type: 'button', hidden: true, onclick: () => { view.scrollTop = view.scrollHeight; } }, 'To the end ↓');
  const status = h('span', { class: 'muted', role: 'status' });
  const times = h('label', {}, h('input', { type: 'checkbox', onchange: (e) => view.classList.toggle('times', e.target.checked) }), 'Times');
  const wrap = h('label', {}, h('input', { type: 'checkbox', checked: true, onchange: (e) => view.classList.toggle('nowrap', !e.target.checked) }), 'Wrap');
  const which = h('select', { 'aria-label': 'Attempt', hidden: true, onchange: () => render() }, h('option', { value: '' }, 'All attempts'));
  const search = h('input', { type: 'search', placeholder: 'Search the log', 'aria-label': 'Search the log', spellcheck: 'false', autocomplete: 'off', hidden: true, oninput: debounce(find, 200), onkeydown: (e) => {
    if (e.key !== 'Enter') return;
    e.preventDefault();
    step(e.shiftKey ? -1 : 1);
  } });
  const hits = h('span', { class: 'muted num', role: 'status' });
  const save = h('button', { type: 'button', class: 'quiet', hidden: true, onclick: () => download() }, 'Download');
  fill(element, h('div', { class: 'row logbar' }, h('h2', {}, 'Log'), status, h('span', { class: 'grow' }), search, hits, which, times, wrap, save), h('div', { class: 'logframe' }, view, end));

  let after = 0, entries = [], follows = true, pens = {}, block = null, inBlock = 0, timer = 0, left = 0, busy = false, once = false;
  const attempts = new Map();
  let at = 0, over = true, marks = 0; // the attempt that is being shown; whether it has ended; how many begin in what is shown

  view.addEventListener('scroll', () => {
    follows = view.scrollHeight - view.scrollTop - view.clientHeight < 24;
    end.hidden = follows;
  }, { passive: true });

  function one(e) {
    const pen = pens[e.stream] ||= {};
    let text = e.text.replace(/\n$/, '');
    if (text.includes('\r')) text = text.replace(/\r+$/, '').split('\r').pop(); // a progress line overwrites itself
    return h('div', { class: `line ${e.stream}` }, h('span', { class: 'at', title: instant(e.at) }, clock(e.at)),
      e.stream !== 'stdout' && h('span', { class: 'stream' }, e.stream === 'stderr' ? 'err' : 'sluice'), h('span', { class: 'text' }, coloured(text, pen)));
  }

  function append(list) {
    const chosen = which.value;
    for (const e of list) {
      if (chosen && String(e.attempt) !== chosen && e.attempt) continue;
      const begins = e.attempt && (over || e.attempt !== at);
      if (!block || inBlock >= 500) { // blocks out of sight cost no layout
        view.append(block = h('div', { class: 'block' }));
        inBlock = 0;
      }
      if (begins) {
        block.append(h('div', { class: 'mark' }, `attempt ${e.attempt}${marks && (over || e.attempt < at) ? ', again' : ''}`));
        marks++;
        at = e.attempt;
        over = false;
      }
      block.append(one(e));
      inBlock++;
      over ||= ends(e);
    }
    view.classList.toggle('several', marks > 1 || !chosen && at > 1); // else there is no need to tell them apart
    if (follows) view.scrollTop = view.scrollHeight;
  }

  function render() {
    view.replaceChildren();
    block = null;
    pens = {};
    at = marks = 0;
    over = true;
    append(entries);
  }

  let found = [], chosen = -1; // lines with what is searched, and which of them is looked at
  function find() {
    for (const e of view.querySelectorAll('.found')) e.classList.remove('found', 'chosen');
    const words = search.value.toLowerCase();
    found = words ? [...view.querySelectorAll('.line .text')].filter((e) => e.textContent.toLowerCase().includes(words)).map((e) => e.parentElement) : [];
    for (const e of found) e.classList.add('found');
    chosen = -1;
    if (found.length) step(1);
    else put(hits, words ? 'not found' : '');
  }
  function step(by) {
    if (!found.length) return;
    found[chosen]?.classList.remove('chosen');
    chosen = (chosen + by + found.length) % found.length;
    follows = false;
    found[chosen].classList.add('chosen');
    view.scrollTop += found[chosen].getBoundingClientRect().top - view.getBoundingClientRect().top - view.clientHeight / 2;
    put(hits, `${number(chosen + 1)} of ${number(found.length)}`);
  }

  // download hands over the whole log as text, also what is not shown here.
  async function download() {
    save.disabled = true;
    try {
      const parts = [];
      for (let from = 0; ;) {
        const page1 = await get(`/tasks/${id}/log`, { after: from, limit: PAGE }, { signal: page.signal });
        parts.push(...page1.entries.map((e) => (e.text.endsWith('\n') ? e.text : e.text + '\n')));
        from = page1.next;
        if (page1.entries.length < PAGE) break;
      }
      const url = URL.createObjectURL(new Blob(parts, { type: 'text/plain' }));
      const a = h('a', { href: url, download: `${id}.log` });
      document.body.append(a);
      a.click();
      a.remove();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    } catch (e) {
      if (e.name !== 'AbortError') put(status, 'could not be read; try again');
    }
    save.disabled = false;
  }

  function count(list) {
    for (const e of list) {
      if (!e.attempt) { if (ends(e)) attempts.clear(); continue; }
      const a = attempts.get(e.attempt);
      if (a && lost(e)) a.lost = true; else if (a) { a.to = e.at; a.lines++; } else attempts.set(e.attempt, { attempt: e.attempt, from: e.at, to: e.at, lines: 1, lost: lost(e) });
    }
    if (attempts.size > 1 && which.options.length !== attempts.size + 1) {
      const now = which.value;
      which.replaceChildren(h('option', { value: '' }, 'All attempts'), ...[...attempts.keys()].map((n) => h('option', { value: n }, `Attempt ${n}`)));
      which.value = now;
    }
    which.hidden = attempts.size < 2;
    told?.([...attempts.values()]);
  }

  async function read() {
    if (busy) { once = true; return; }
    busy = true;
    once = false;
    clearTimeout(timer);
    if (running()) view.classList.add('live'); // it keeps its height then
    const live = running(); // before the log is read: what it writes last is read once more
    try {
      for (;;) {
        const found = await get(`/tasks/${id}/log`, { after, limit: PAGE }, { signal: page.signal });
        after = found.next;
        count(found.entries);
        const room = Math.max(0, MOST - entries.length), list = found.entries.slice(0, room);
        left += found.entries.length - list.length;
        entries.push(...list);
        append(list);
        if (found.entries.length < PAGE) break;
      }
      put(status, live ? 'following' : left ? `${plural(left, 'line')} more; sluice task logs shows all` : entries.length ? plural(entries.length, 'line') : '');
      search.hidden = save.hidden = !entries.length;
      if (!entries.length) fill(view, h('p', { class: 'muted' }, live ? 'Nothing has been printed yet.' : begun() ? 'Nothing was printed.' : 'It has not begun.'));
      else if (view.firstElementChild?.tagName === 'P') view.firstElementChild.remove();
    } catch (e) {
      if (e.name === 'AbortError') return;
      put(status, 'could not be read; it is tried again');
    } finally { busy = false; }
    if (once) return read(); // the task changed while its log was read
    if (live || status.textContent.startsWith('could')) timer = setTimeout(tick, 1000);
  }
  function tick() {
    if (document.hidden) timer = setTimeout(tick, 1000);
    else read();
  }
  page.onLeave(() => clearTimeout(timer));
  read();
  return { read };
}
