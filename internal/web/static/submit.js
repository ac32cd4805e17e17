// Submit a plan: paste it or drop a file; what is wrong with it is said at its line, beside the text.
import { h, fill, put, href, plural, errorBox } from './dom.js';
import { send } from './api.js';
import { go } from './app.js';

const SAMPLE = `plan: hello
tasks:
  greet:
    run: echo '"hello"' > "$SLUICE_OUTPUT"
  shout:
    needs: [greet]
    run: echo "\${{ needs.greet }}" | tr a-z A-Z
`;
const DRAFT = 'sluice-draft';

export default async function submit({ main, page }) {
  page.title('Submit a plan');
  let draft = '';
  try { draft = sessionStorage.getItem(DRAFT) || ''; } catch { /* it is not kept */ }
  const gutter = h('ol', { class: 'gutter', 'aria-hidden': 'true' });
  const text = h('textarea', { id: 'file', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off', 'aria-label': 'Plan file', 'aria-describedby': 'mistakes', value: draft, placeholder: 'plan: nightly\ntasks:\n  …', oninput: changed });
  const editor = h('div', { class: 'editor' }, gutter, text);
  const mistakes = h('div', { class: 'mistakes', id: 'mistakes', role: 'status' });
  const file = h('input', { type: 'file', accept: '.yaml,.yml,.json', class: 'off', tabindex: '-1', 'aria-hidden': 'true', onchange: () => take(file.files[0]) });
  const params = h('div', { class: 'params' });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Submit');
  const form = h('form', { onsubmit: (e) => { e.preventDefault(); submitted(); } },
    h('div', { class: 'row' }, h('button', { type: 'button', onclick: () => file.click() }, 'Open a file'), file,
      h('button', { type: 'button', class: 'quiet', onclick: () => { text.value = SAMPLE; changed(); text.focus(); } }, 'An example'),
      h('span', { class: 'muted wide' }, 'or paste it, or drop a file on the text'), h('span', { class: 'grow' })),
    h('div', { class: 'beside' }, editor, mistakes),
    h('section', {}, h('h2', {}, 'Params'), h('p', { class: 'muted' }, 'They take the place of what the file’s ', h('code', {}, 'params'), ' says.'), params,
      h('button', { type: 'button', class: 'quiet', onclick: () => param().focus() }, 'Add a param')),
    h('p', { class: 'hint only-viewer' }, 'You may look, and not submit: ask who runs this server for the role of an editor.'), h('div', { class: 'row submit needs-submit' }, button, h('span', { class: 'muted wide' }, 'Ctrl + Enter')));
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Submit a plan')), form);

  let key = '';
  let lines = 0, wrong = new Set();
  function changed() {
    key = ''; // another text is another submission
    const n = text.value.split('\n').length;
    if (n !== lines) number(n);
    try { sessionStorage.setItem(DRAFT, text.value.length < 1e6 ? text.value : ''); } catch { /* it is not kept */ }
  }
  function number(n) {
    lines = n;
    fill(gutter, Array.from({ length: Math.min(n, 20000) }, (_, i) => h('li', { class: wrong.has(i + 1) ? 'wrong' : '' })));
  }
  text.addEventListener('scroll', () => { gutter.scrollTop = text.scrollTop; }, { passive: true });
  text.addEventListener('keydown', (e) => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); form.requestSubmit(); }
  });
  for (const kind of ['dragover', 'dragleave', 'drop']) {
    editor.addEventListener(kind, (e) => {
      if (!e.dataTransfer?.types.includes('Files')) return;
      e.preventDefault();
      editor.classList.toggle('over', kind === 'dragover');
      if (kind === 'drop') take(e.dataTransfer.files[0]);
    });
  }
  async function take(f) {
    if (!f) return;
    text.value = await f.text();
    file.value = '';
    changed();
    clear();
  }
  function param(name = '', value = '') {
    const n = h('input', { 'aria-label': 'Name of a param', placeholder: 'name', value: name, spellcheck: 'false', autocapitalize: 'off' });
    const row = h('div', { class: 'row' }, n, '=', h('input', { 'aria-label': 'Its value', placeholder: 'value', value, spellcheck: 'false', class: 'grow' }),
      h('button', { type: 'button', class: 'quiet', 'aria-label': 'Leave this param out', onclick: () => row.remove() }, '✕'));
    params.append(row);
    return n;
  }
  function clear() {
    wrong = new Set();
    number(lines);
    fill(mistakes);
  }
  function goTo(line, column) {
    const all = text.value.split('\n');
    const at = all.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0) + [...(all[line - 1] || '')].slice(0, Math.max(0, (column || 1) - 1)).join('').length;
    text.focus();
    text.setSelectionRange(at, Math.min(text.value.length, at + 1));
    const height = parseFloat(getComputedStyle(text).lineHeight);
    text.scrollTop = Math.max(0, (line - 4) * height);
  }
  function show(p) {
    const placed = (p.errors || []).filter((e) => e.line > 0);
    const rest = (p.errors || []).filter((e) => !(e.line > 0));
    wrong = new Set(placed.map((e) => e.line));
    number(lines);
    if (!placed.length && !rest.length) {
      fill(mistakes, errorBox(p));
      return;
    }
    fill(mistakes, h('p', { class: 'strong s-failed' }, `${plural(placed.length + rest.length, 'mistake')}; nothing was submitted`),
      h('ul', {}, placed.map((e) => h('li', {}, h('button', { type: 'button', class: 'mistake', onclick: () => goTo(e.line, e.column) },
        h('span', { class: 'place num' }, `${e.line}:${e.column || 1}`), h('span', {}, e.message)))),
      rest.map((e) => h('li', {}, h('p', { class: 'mistake' }, h('span', {}, e.message))))));
    if (placed.length) goTo(placed[0].line, placed[0].column);
  }
  async function submitted() {
    if (!text.value.trim()) {
      fill(mistakes, h('p', { class: 'strong' }, 'There is no plan yet: paste one, open a file, or begin with the example.'));
      text.focus();
      return;
    }
    const given = [];
    for (const row of params.children) {
      const [n, v] = row.querySelectorAll('input');
      if (n.value.trim()) given.push(`${n.value.trim()}=${v.value}`);
    }
    button.disabled = true;
    put(button, 'Submitting…');
    try {
      key ||= crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2) + Date.now(); // the browser has none over http
      const p = await send('POST', '/plans', text.value, { type: 'application/yaml', query: { param: given }, headers: { 'Idempotency-Key': key }, signal: page.signal });
      try { sessionStorage.removeItem(DRAFT); } catch { /* it was not kept */ }
      go(href('plans', p.id));
    } catch (e) {
      if (e.name === 'AbortError') return;
      if (e.status) key = '';
      show(e);
    } finally {
      button.disabled = false;
      put(button, 'Submit');
    }
  }
  changed();
  if (!draft) text.focus({ preventScroll: true });
}
