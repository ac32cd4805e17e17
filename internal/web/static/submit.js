// Submit a plan: paste it or drop a file, say where its paths begin and what its params are. A check says what is wrong, at its line beside the
// text, and what is known of the file; so does a submission that is refused.
import { h, fill, put, href, plural, number, errorBox, command, debounce } from './dom.js';
import { get, send } from './api.js';
import { textOf } from './again.js';
import { go } from './address.js';
import { may } from './session.js';
import { paramFields } from './params.js';
import { sketch } from './sketch.js';

const DRAFT = 'sluice-draft'; // what was typed, as {text, dir, params, values}; of params that are secret, or not known to be none, no value
const RECENT = 50; // plans, of which the files are offered
const WHERE = 'on the nodes’ hosts, where commands run and paths in the file start';

// What was noted of plans that were submitted here, for their pages.
const noted = new Map();
export const notesOf = (id) => noted.get(id) || [];
export const forgetNotes = (id) => noted.delete(id);

export default async function submit({ main, query, page }) {
  page.title('Submit a plan');
  if (!may('submit')) {
    fill(main, h('div', { class: 'head' }, h('h1', {}, 'Submit a plan')),
      h('div', { class: 'hint' }, h('p', {}, h('strong', {}, 'You may look, and not submit. '), 'Ask who runs this server for the role of an editor.')),
      h('p', { class: 'buttons' }, h('a', { class: 'button', href: '/ui/' }, 'All plans')));
    return;
  }
  let kept = {};
  try { kept = JSON.parse(sessionStorage.getItem(DRAFT)) || {}; } catch { /* there is none */ }
  const draft = kept.text || '';
  const gutter = h('ol', { class: 'gutter', 'aria-hidden': 'true' });
  const text = h('textarea', { id: 'file', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off', 'aria-label': 'Plan file', 'aria-describedby': 'mistakes', value: draft, placeholder: 'plan: nightly\ntasks:\n  …', oninput: changed });
  const editor = h('div', { class: 'editor' }, gutter, text);
  const findings = h('div', { class: 'mistakes', id: 'mistakes', role: 'status' });
  const file = h('input', { type: 'file', accept: '.yaml,.yml,.json', class: 'off', tabindex: '-1', 'aria-hidden': 'true', onchange: () => take(file.files[0]) });
  const params = paramFields(() => { anew(); keep(); });
  const dir = h('input', { id: 'dir', value: kept.dir || '', placeholder: '/', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', oninput: () => { anew(); unplaced(); keep(); }, 'aria-describedby': 'dir-note' });
  const dirNote = h('span', { id: 'dir-note', class: 'muted', role: 'status' }, WHERE);
  const recent = h('select', { 'aria-label': 'A recent file', hidden: true, onchange: () => { if (recent.value) takePlan(recent.value); recent.value = ''; } });
  const examples = h('select', { 'aria-label': 'An example', hidden: true, onchange: () => {
    text.value = texts.get(examples.value);
    examples.value = '';
    replaced('');
    text.focus();
  } });
  const texts = new Map(); // of the examples, by name
  const drawn = sketch(goTo);
  const checkButton = h('button', { type: 'button', onclick: () => check() }, 'Check'), button = h('button', { type: 'submit', class: 'primary' }, 'Submit');
  const form = h('form', { onsubmit: (e) => { e.preventDefault(); submitted(); } },
    h('div', { class: 'row' }, h('button', { type: 'button', onclick: () => file.click() }, 'Open a file'), file,
      examples, recent,
      h('span', { class: 'muted wide' }, 'or paste it, or drop a file on the text'), h('span', { class: 'grow' })),
    h('div', { class: 'beside' }, editor, h('div', {}, findings, drawn.element)),
    params.element,
    h('section', { class: 'param' }, h('label', { for: 'dir' }, 'Folder'), dir, dirNote),
    h('div', { class: 'row submit' }, button, checkButton, h('span', { class: 'muted wide' }, 'Ctrl + Enter; with Shift it checks')));
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Submit a plan')), form);

  let key = ''; // of this submission, which may be sent twice
  let name = ''; // of the file that was opened
  let lines = 0, wrong = new Set();
  let placed = false; // who submits was told that it starts from /
  function anew() { key = ''; }
  // unplaced reports whether the file depends on a folder that is not given, and asks for it.
  function unplaced(found) {
    const asked = !dir.value.trim() && (found || []).some((n) => n.give === 'dir');
    put(dirNote, asked ? 'Give the folder: the file has commands or paths that start from it, and they would start from /' : WHERE);
    dirNote.className = asked ? 's-failed' : 'muted';
    return asked;
  }
  function changed() {
    placed = false;
    anew(); // another text is another submission
    const n = text.value.split('\n').length;
    if (n !== lines) mark(n);
    keep();
    draw();
  }
  const draw = debounce(() => { if (!page.over) drawn.draw(text.value, page.signal); }, 500);
  page.onLeave(drawn.destroy);
  // keep keeps what was typed while this tab is open, but for values that may be secret.
  function keep() {
    const { declared, values } = params.kept();
    try { sessionStorage.setItem(DRAFT, JSON.stringify({ text: text.value.length < 1e6 ? text.value : '', dir: dir.value, params: declared, values })); } catch { /* it is not kept */ }
  }
  // takePlan takes the file of a plan that was submitted before, with the params that it had, but for the secret ones.
  async function takePlan(id) {
    try {
      const [p, found] = await Promise.all([get(`/plans/${id}`, null, { signal: page.signal }), get(`/plans/${id}/file`, null, { signal: page.signal })]);
      if (!found.text) {
        fill(findings, h('p', { class: 'strong' }, `The file of ${p.name} #${p.run} was not kept.`));
        return;
      }
      text.value = found.text;
      dir.value = found.dir && found.dir !== '/' ? found.dir : '';
      replaced('');
      const had = p.params || {}, secret = (name) => textOf(had[name]).includes('***');
      let list = Object.keys(had).map((name) => ({ name }));
      try { list = (await request({ check: 'true' })).params; } catch (e) { if (e.name === 'AbortError') throw e; } // it says later what is wrong
      params.declare(list.map((d) => (secret(d.name) ? { ...d, secret: true, missing: true } : d)),
        Object.fromEntries(list.filter((d) => d.name in had && !secret(d.name) && textOf(had[d.name]) !== textOf(d.default)).map((d) => [d.name, textOf(had[d.name])])));
      keep();
      fill(findings, h('p', { class: 'muted' }, `The file of ${p.name} #${p.run}, with the params that it had. `, found.text.includes('***') && 'What is *** in it is secret: write it again.'));
    } catch (e) {
      if (e.name !== 'AbortError') fill(findings, errorBox(e));
    }
  }
  // offer lists the last plans of each name.
  async function offer() {
    const { plans } = await get('/plans', { limit: RECENT }, { signal: page.signal });
    const latest = plans.filter((p, i) => plans.findIndex((x) => x.name === p.name) === i);
    recent.hidden = !latest.length;
    fill(recent, h('option', { value: '' }, 'A recent file…'), latest.map((p) => h('option', { value: p.id }, `${p.name} #${p.run}`)));
  }
  function mark(n) {
    lines = n;
    fill(gutter, Array.from({ length: Math.min(n, 20000) }, (_, i) => h('li', { class: wrong.has(i + 1) ? 'wrong' : '' })));
  }
  function replaced(by) {
    name = by;
    wrong = new Set();
    changed();
    mark(lines);
    fill(findings);
    params.clear();
  }
  text.addEventListener('scroll', () => { gutter.scrollTop = text.scrollTop; }, { passive: true });
  form.addEventListener('keydown', (e) => {
    if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
    e.preventDefault();
    if (e.shiftKey) check();
    else form.requestSubmit();
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
    replaced(f.name);
  }
  function goTo(line, column) {
    const all = text.value.split('\n');
    const at = all.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0) + [...(all[line - 1] || '')].slice(0, Math.max(0, (column || 1) - 1)).join('').length;
    text.focus();
    text.setSelectionRange(at, Math.min(text.value.length, at + 1));
    const height = parseFloat(getComputedStyle(text).lineHeight);
    text.scrollTop = Math.max(0, (line - 4) * height);
  }
  // finding is one thing that is said of the file, with its place and the line.
  function finding(e, all) {
    if (!(e.line > 0)) return h('li', {}, h('p', { class: 'mistake' }, h('span', {}, e.message)), e.do && command(e.do));
    const column = e.column || 1;
    return h('li', {}, h('button', { type: 'button', class: 'mistake', onclick: () => goTo(e.line, column) },
      h('span', { class: 'place num' }, `${name ? `${name}:` : ''}${e.line}:${column}`), h('span', {}, e.message)),
    h('pre', { class: 'excerpt', 'aria-hidden': 'true' }, excerpt(all[e.line - 1] || '', column)), e.do && command(e.do));
  }
  const list = (found) => {
    const all = text.value.split('\n');
    return h('ul', {}, found.map((e) => finding(e, all)));
  };
  const notes = (found) => found.length > 0 && h('div', { class: 'noted' }, h('p', { class: 'strong' }, plural(found.length, 'note')), list(found));
  function refused(p) {
    const found = p.errors || [];
    wrong = new Set(found.filter((e) => e.line > 0).map((e) => e.line));
    mark(lines);
    if (!found.length) {
      fill(findings, errorBox(p));
      findings.scrollIntoView({ block: 'nearest' });
      return;
    }
    found.sort((a, b) => !(a.line > 0) - !(b.line > 0));
    fill(findings, h('p', { class: 'strong s-failed' }, `${plural(found.length, 'mistake')}; nothing was submitted`), list(found));
    if (wrong.size) goTo(found[0].line, found[0].column);
    else findings.scrollIntoView({ block: 'nearest' });
  }
  function passed(c) {
    wrong = new Set();
    mark(lines);
    params.declare(c.params);
    keep();
    const missing = c.params.filter((p) => p.missing).map((p) => p.name);
    fill(findings, missing.length
      ? h('p', { class: 'strong s-failed' }, `Nothing is wrong with the file. To be given: ${missing.join(', ')}`)
      : h('p', { class: 'strong s-succeeded' }, 'It can be submitted'),
    h('p', {}, h('span', { class: 'name' }, c.name), `: ${plural(c.tasks, 'task')}, ${plural(c.needs, 'need')}, at most ${number(c.levels)} one after the other`), notes(c.notes));
    unplaced(c.notes);
    return missing.length === 0;
  }

  // request sends the file with its params, which stand in no URL.
  function request(query, headers) {
    const body = new FormData();
    body.append('plan', new Blob([text.value], { type: 'application/yaml' }), 'plan.yaml');
    for (const p of params.given()) body.append('param', p);
    return send('POST', '/plans', body, { query: { dir: dir.value.trim(), ...query }, headers, signal: page.signal });
  }
  // busy does f while nothing can be pressed, and shows what went wrong.
  async function busy(b, word, f) {
    if (!text.value.trim()) {
      fill(findings, h('p', { class: 'strong' }, 'There is no plan yet: paste one, open a file, or begin with an example.'));
      text.focus();
      return;
    }
    if (button.disabled) return;
    const was = b.textContent;
    button.disabled = checkButton.disabled = true;
    put(b, word);
    try {
      await f();
    } catch (e) {
      if (e.name === 'AbortError') return;
      refused(e);
    } finally {
      button.disabled = checkButton.disabled = false;
      put(b, was);
    }
  }
  const check = () => busy(checkButton, 'Checking…', async () => {
    if (passed(await request({ check: 'true' }))) findings.scrollIntoView({ block: 'nearest' });
    else params.first()?.focus();
  });
  const submitted = () => busy(button, 'Submitting…', async () => {
    let p;
    try {
      if (!dir.value.trim() && !placed) { // of a folder that is not given one is told before, and once
        const c = await request({ check: 'true' });
        if (passed(c) && unplaced(c.notes)) {
          placed = true;
          put(dirNote, `${dirNote.textContent}. Submit again if that is meant`);
          dir.focus();
          return;
        }
      }
      key ||= crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2) + Date.now(); // the browser has none over http
      p = await request({}, { 'Idempotency-Key': key });
    } catch (e) {
      if (e.status) key = '';
      // Where no more is wrong than that params are missing, a check has fields for them.
      if (e.status !== 422 || !e.errors?.length || passed(await request({ check: 'true' }).catch(() => { throw e; }))) throw e;
      params.first()?.focus();
      return;
    }
    try { sessionStorage.removeItem(DRAFT); } catch { /* it was not kept */ }
    if (p.notes) noted.set(p.id, p.notes);
    go(href('plans', p.id));
  });
  if (draft && kept.params?.length) params.declare(kept.params, kept.values);
  changed();
  offer().catch(() => { /* none are offered */ });
  get('/plan-examples', null, { signal: page.signal }).then((found) => {
    for (const e of found.examples) texts.set(e.name, e.text);
    fill(examples, h('option', { value: '' }, 'An example…'), found.examples.map((e) => h('option', { value: e.name }, `${e.name}: ${e.use}`)));
    examples.hidden = false;
  }, () => { /* none are offered */ });
  if (query.get('plan')) await takePlan(query.get('plan'));
  else if (!draft) text.focus({ preventScroll: true });
}

// excerpt is a line, or a part of a long one, with a caret below the column.
function excerpt(line, column) {
  const chars = [...line.replaceAll('\t', ' ')];
  const from = column > 40 ? column - 20 : 0;
  const before = column - 1 - from + (from ? 1 : 0);
  return `${from ? '…' : ''}${chars.slice(from, from + 60).join('')}${chars.length > from + 60 ? '…' : ''}\n${' '.repeat(before)}^`;
}
