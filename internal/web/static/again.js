// What runs again: a dialog that offers what failed, all from a task on, or everything as a new run, and says before it starts what that is.
import { h, fill, number, plural, fullName, labelled, command, quoted, debounce, href } from './dom.js';
import * as api from './api.js';
import { ask } from './dialog.js';
import { may } from './session.js';

const NAMED = 8; // tasks that a preview names
const LISTED = 500; // tasks that can be chosen from

// textOf is a param's value as people type it.
export const textOf = (v) => (v === undefined ? '' : typeof v === 'string' ? v : JSON.stringify(v));

// declaredIn returns the params that a plan's file declares, with their choices; none where the check of the file says nothing of them.
async function declaredIn(file) {
  const body = new FormData();
  body.append('plan', new Blob([file.text], { type: 'application/yaml' }), 'plan.yaml');
  try {
    return (await api.send('POST', '/plans', body, { query: { dir: file.dir, check: 'true' } })).params;
  } catch { return []; } // the submission says what is wrong
}

const hidden = (v) => JSON.stringify(v ?? null).includes('***');

// runAgain shows the dialog for a plan, or for one task of it. It returns {text} to be said, or {plan} where a new run was submitted; nothing where nobody agreed.
export async function runAgain(p, { get, task }) {
  const notDone = p.state === 'succeeded' ? 0 : p.sums.broken + p.counts.allowed + (p.counts.cancelled || 0) + (p.counts.skipped || 0); // of one that succeeded what was skipped was to be
  const [file, { tasks: known }] = await Promise.all([get(`/plans/${p.id}/file`), get('/tasks', { plan: p.id, no_items: true, with: 'needs', limit: LISTED })]);
  const ways = [
    task && may('operate') && ['task', 'This task, and what was skipped below it'],
    notDone > 0 && may('operate') && ['failed', 'What did not succeed'],
    may('operate') && ['from', 'Everything from a task on'],
    (file.text ? may('submit') : may('operate') && p.sums.tasks <= LISTED) && ['all', file.text ? 'Everything, as a new run' : 'Everything, in this run'],
  ].filter(Boolean);
  let way = ways[0]?.[0], result = null, chosen = null, key = '';
  const from = h('input', { value: task?.name || '', list: 'again-tasks', placeholder: 'name of a task', 'aria-label': 'From which task', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', oninput: debounce(() => look(), 250) });
  const names = h('datalist', { id: 'again-tasks' }, known.map((t) => h('option', { value: t.name })));
  const declared = file.text && may('submit') ? await declaredIn(file) : [];
  const params = Object.entries(p.params || {}).map(([name, value]) => {
    const secret = hidden(value), was = secret ? '' : textOf(value);
    const choices = (!secret && declared.find((d) => d.name === name)?.choices || []).map(textOf);
    if (choices.includes(was)) {
      return { name, was, input: h('select', { id: `again-${name}`, onchange: () => { key = ''; } }, choices.map((c) => h('option', { value: c, selected: c === was }, c))) };
    }
    return { name, was, input: h('input', { id: `again-${name}`, value: was, type: secret ? 'password' : 'text', placeholder: secret ? 'as it was' : '', spellcheck: 'false', autocapitalize: 'off', autocomplete: secret ? 'new-password' : 'off', oninput: () => { key = ''; } }) };
  });
  const more = {
    from: h('div', { class: 'more' }, from, names),
    all: file.text ? params.length > 0 && h('div', { class: 'more' }, h('p', { class: 'muted' }, 'With these params:'), params.map((f) => h('div', { class: 'param' }, h('label', { for: f.input.id }, f.name), f.input)))
      : h('p', { class: 'more muted' }, 'The plan’s file was not kept, so its tasks run again here, as they are.'),
  };
  const preview = h('div', { class: 'preview', role: 'status' });
  const radios = h('fieldset', { class: 'ways' }, h('legend', { class: 'off' }, 'What is to run again'), ways.map(([name, label]) => h('div', {},
    h('label', {}, h('input', { type: 'radio', name: 'way', value: name, checked: name === way, onchange: () => { way = name; turn(); } }), label), more[name])));
  function turn() {
    for (const [name, e] of Object.entries(more)) if (e) e.hidden = name !== way;
    if (way === 'from') from.focus();
    look();
  }
  let asked = 0;
  // look asks what would run, and says it.
  async function look() {
    const mine = ++asked;
    chosen = null;
    try {
      if (way === 'all' && file.text) return fill(preview, h('p', {}, `${p.name} #${p.run} stays as it is. A new run of its file, as it was submitted, begins.`));
      let body = {}, line = `sluice plan retry ${quoted(`${p.name}#${p.run}`)}`;
      if (way === 'task') {
        body = { tasks: [task.id] };
        line += ` ${quoted(task.name)}`;
      } else if (way === 'from') {
        const name = from.value.trim();
        const found = name && (known.find((t) => t.name === name) || (await get(`/plans/${p.id}/tasks`, { name })).tasks[0]);
        if (mine !== asked) return;
        if (!found) return fill(preview, h('p', { class: 'muted' }, name ? `There is no task “${name}”.` : 'Choose a task: it runs again, and all below it.'));
        body = { tasks: [found.id], downstream: true };
        line += ` ${quoted(name)} --downstream`;
      } else if (way === 'all') {
        body = { tasks: known.filter((t) => !t.needs?.length).map((t) => t.id), downstream: true };
        line = '';
      }
      const { tasks } = await api.post(`/plans/${p.id}/retry`, { ...body, check: true });
      const ran = tasks.filter((t) => t.status === 1).map((t) => t.id), others = tasks.filter((t) => t.status !== 1).map((t) => t.id);
      const some = await named([...others.slice(0, NAMED), ...ran.slice(0, NAMED)]);
      if (mine !== asked) return;
      chosen = body;
      const list = (ids) => [ids.slice(0, NAMED).map((id, i) => some.has(id) && [i > 0 && ', ', labelled(some.get(id))]), ids.length > NAMED && ` and ${number(ids.length - NAMED)} more`];
      fill(preview, h('p', {}, h('strong', {}, `${plural(tasks.length, 'task')} will run. `), others.length > 0 && list(others)),
        ran.length > 0 && h('p', {}, h('strong', {}, `${number(ran.length)} of them succeeded, and will run a second time: `), list(ran)),
        line && h('p', { class: 'muted' }, 'The same on the command line:'), line && command(line));
    } catch (e) {
      if (mine === asked) fill(preview, h('p', { class: 'problem' }, e.detail || e.message));
    }
  }
  async function named(ids) {
    const { tasks } = ids.length ? await get('/tasks', { ids: ids.join(','), with: 'item_label', limit: ids.length }) : { tasks: [] };
    return new Map(tasks.map((t) => [t.id, t]));
  }
  if (!ways.length) return null;
  turn();
  const agreed = await ask({
    title: `Run ${task ? fullName(task) : `${p.name} #${p.run}`} again`, ok: 'Run', cancel: 'Cancel', wide: true, body: h('div', { class: 'again' }, radios, preview),
    submit: async () => {
      if (way === 'all' && file.text) {
        const changed = Object.fromEntries(params.filter((f) => f.input.value !== f.was).map((f) => [f.name, f.input.value]));
        key ||= crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2) + Date.now();
        result = { plan: await api.post(`/plans/${p.id}/runs`, { params: changed }, { headers: { 'Idempotency-Key': key } }) };
        return;
      }
      if (!chosen) throw new Error(way === 'from' ? 'Choose a task of the plan.' : 'It is not known yet what that would run.');
      const { tasks } = await api.post(`/plans/${p.id}/retry`, chosen);
      result = { text: `${plural(tasks.length, 'task')} will run again.` };
    },
  });
  return agreed ? result : null;
}

const ICONS = 12; // runs of a strip

// runs shows the last runs of a plan's name as a strip of their states, and leads to the one before and the one after.
export async function runs(element, p, { get, icon, describe }) {
  const { plans } = await get('/plans', { name: p.name, limit: ICONS });
  const all = plans.some((x) => x.id === p.id) ? plans : [...plans, ...(await get('/plans', { name: p.name, run: p.run })).plans];
  let [after] = all.filter((x) => x.run > p.run).sort((a, b) => a.run - b.run);
  let [before] = all.filter((x) => x.run < p.run).sort((a, b) => b.run - a.run);
  if (!plans.some((x) => x.id === p.id)) [after] = (await get('/plans', { name: p.name, run: p.run + 1 })).plans;
  before ||= (await get('/plans', { name: p.name, before: p.id, limit: 1 })).plans[0];
  if (!after && !before) return fill(element);
  const link = (x, label, words) => (x ? h('a', { href: href('plans', x.id), title: describe(x), rel: words }, label) : h('span', { class: 'muted' }, label));
  fill(element, link(before, '← Previous run', 'prev'), h('span', { class: 'strip' }, all.sort((a, b) => a.run - b.run).map((x) => h('a', {
    href: href('plans', x.id), title: describe(x), 'aria-label': describe(x), 'aria-current': x.id === p.id ? 'true' : null,
  }, icon(x.stalled ? 'stalled' : x.state)))), link(after, 'Next run →', 'next'));
}
