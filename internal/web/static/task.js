// One task: what it is, why it does not run, what it was given, printed and made, and what can be done about it.
import { h, fill, put, href, fullName, labelled, number, plural, ago, between, clock, instant, pretty, folded, errorBox, command, copied } from './dom.js';
import * as api from './api.js';
import { go } from './address.js';
import { ask, action } from './dialog.js';
import { runAgain } from './again.js';
import { badge, active, finished, how, took, shown as shownState, FAILED, startedBy } from './states.js';
import { log } from './log.js';
import { word } from './words.js';
import { awaits, question } from './approve.js';
import { facts } from './plan.js';

const ITEMS = 60; // of a foreach task, that are listed: those that failed before the others
const LARGE = 5000; // tasks of a plan that is not read again for one of them

export default async function task({ main, params, page }) {
  const get = (path, q, o) => api.get(path, q, { signal: page.signal, ...o });
  const id = params.task;
  let t = await get(`/tasks/${id}`, null, { exact: true });
  let plan = t.plan ? await get(`/plans/${t.plan}`) : null;

  const state = badge(...shownState(t));
  const words = h('span', { class: 'num' }), endedAt = h('time', {}), line = h('p', { class: 'meta' }, words, endedAt);
  const detail = h('div', {});
  const said = h('p', { class: 'said', role: 'status' });
  const again = action(t.plan ? 'Run again…' : 'Run again', async () => {
    if (t.plan) {
      plan = await get(`/plans/${t.plan}`);
      const chosen = await runAgain(plan, { get, task: t });
      if (chosen?.plan) return go(href('plans', chosen.plan.id));
      if (!chosen) return;
      put(said, chosen.text);
    } else {
      const found = await api.post('/tasks/retry', { tasks: [t.id], downstream: true });
      put(said, found.tasks.length > 1 ? `It runs again, and with it ${plural(found.tasks.length - 1, 'task')} that hung on it.` : 'It runs again.');
    }
    await refresh();
  }, { class: 'primary needs-operate' });
  const anew = action(['Run again', h('span', { class: 'wide' }, ', and what is below')], async () => {
    const found = await api.post(`/plans/${t.plan}/retry`, { tasks: [t.id], downstream: true });
    put(said, found.tasks.length > 1 ? `It runs again, and with it ${plural(found.tasks.length - 1, 'task')} below.` : 'It runs again.');
    await refresh();
  }, { class: 'needs-operate' });
  // outdated reports whether a retry kept the task, and what it needs ran again since.
  const outdated = () => t.state === 'succeeded' && Boolean(plan?.outdated?.includes(t.of ? t.name.replace(/\[\d+\]$/, '') : t.name));
  const cancel = action('Cancel', async () => {
    if (!await ask({ title: `Cancel ${t.name ? fullName(t) : 'the task'}?`, body: active(t.state) ? 'It is told to stop. What needs it is skipped, unless its “when” says otherwise.' : 'It will not run. What needs it is skipped, unless its “when” says otherwise.', ok: 'Cancel the task', cancel: 'Let it be', danger: true })) return;
    await api.post(`/tasks/${id}/cancel`);
    await refresh();
  }, { class: 'danger needs-operate' });
  const why = h('section', { class: 'why', hidden: true });
  const asked = h('section', { class: 'question', hidden: true, 'aria-label': 'A question for you' });
  const logs = h('section', { class: 'logs' }), output = h('section', {}), given = h('section', {});
  const side = h('dl', { class: 'facts' });
  const siblings = h('span', { class: 'siblings' });
  const family = { parents: h('section', {}), children: h('section', {}), items: h('section', { class: 'items' }), attempts: h('section', {}) };

  fill(main,
    h('nav', { class: 'crumbs', 'aria-label': 'Where this is' }, h('a', { href: '/ui/' }, 'Plans'), ' / ',
      plan ? h('a', { href: href('plans', plan.id) }, `${plan.name} #${plan.run}`) : h('span', {}, 'tasks of no plan'), siblings),
    h('div', { class: 'head' }, h('h1', {}, h('span', {}, labelled(t)), state), h('div', { class: 'buttons' }, again, cancel)),
    line, said, asked, detail, why,
    h('div', { class: 'columns task' }, h('div', { class: 'main' }, t.foreach && family.items, logs, output, given),
      h('aside', {}, h('h2', {}, 'Task'), side, family.attempts, family.parents, family.children)));

  let shown = '';
  function render() {
    page.title(`${fullName(t)} ${word(t.state)}`);
    standing([t]).then(([{ state: s }]) => {
      if (t.cancel && !finished(s)) state.set(s, `${word(s)}, being cancelled`);
      else if (s === t.state) state.set(...shownState(t));
      else state.set(s);
    }, () => { /* as it was */ });
    tick();
    const now = JSON.stringify([t.state, t.attempt, t.reason, t.detail, t.node, t.cancel, t.modified, Boolean(t.output)]);
    if (now === shown) return;
    shown = now;
    asked.hidden = !awaits(t);
    fill(asked, awaits(t) && question(t, refresh));
    again.hidden = !finished(t.state) || t.state === 'succeeded';
    cancel.hidden = finished(t.state) || Boolean(t.cancel);
    const bad = finished(t.state) && t.state !== 'succeeded';
    fill(detail, t.detail && !awaits(t) && !/^exit status \d+$/.test(t.detail) && h('pre', { class: bad && t.state !== 'skipped' && t.state !== 'cancelled' ? 'code bad' : 'code' }, t.detail));
    fill(side, facts([
      ['Queue', h('a', { href: '/ui/queues' }, t.queue)], ['Started by', t.schedule && startedBy(`schedule ${t.schedule}`)], ['Node', t.node && h('a', { href: '/ui/nodes' }, t.node)], ['Attempt', t.attempt ? `${t.attempt}${t.most_attempts ? ` of ${t.most_attempts}` : ''}` : null],
      ['Began', t.started && h('span', { title: instant(t.started) }, clock(t.started))], ['Ended', t.ended && finished(t.state) && h('span', { title: instant(t.ended) }, clock(t.ended))],
      ['Not before', instant(t.not_before)],
      ['When', t.when && h('code', {}, t.when)], ['Timeout', t.timeout?.replace(/(\D)0s$/, '$1').replace(/(\D)0m$/, '$1')], ['On failure', t.continue_on_error && 'the plan goes on'], ['Lost with nodes', t.rescues && plural(t.rescues, 'time')],
      ['Subject', t.subject], ['About', t.description], ['Id', copied(t.id, 'the id')],
    ]));
    fill(output, h('h2', {}, 'Output'), t.output_left_out ? h('p', { class: 'muted' }, t.output_left_out)
      : Array.isArray(t.output) && t.output.length > 0 && t.output.every((v) => v === null) ? h('p', { class: 'muted' }, `A null for each of ${plural(t.output.length, 'item')}.`)
      : t.output !== undefined && t.output !== null ? folded(typeof t.output === 'string' ? t.output : pretty(t.output), { label: 'output' })
        : h('p', { class: 'muted' }, finished(t.state) ? 'It has none.' : 'It has none yet.'));
    const { run, ...rest } = t.params || {};
    const ran = run === undefined ? '' : asRan(t.params);
    const inputs = t.needs?.length && rest.needs; // what is delivered stands among its params, by name and in order
    if (inputs) for (const k of ['needs', 'args']) delete rest[k];
    fill(given, run !== undefined && [h('h2', {}, t.attempt ? 'The command as it ran' : 'Command'), folded(ran, { label: 'command' })],
      inputs && [h('h2', {}, 'Inputs'), folded(pretty(inputs), { label: 'inputs' })],
      h('h2', {}, 'Params'), Object.keys(rest).length ? folded(pretty(rest), { label: 'params' }) : h('p', { class: 'muted' }, 'It has none.'));
    explain();
    parents();
  }
  function tick() {
    const parts = [how(t)];
    const lasted = took(t), which = t.attempt > 1 || !finished(t.state) ? ` in attempt ${t.attempt}` : '';
    if (t.state === 'running') parts.push(`running for ${lasted}`);
    else if (t.state === 'claimed') parts.push(`starting for ${between(t.modified)}`);
    else if (lasted) parts.push(`took ${lasted}${which}`);
    if (t.progress) parts.push(`${Math.floor(t.progress.fraction * 100 + 1e-9)}% ${t.progress.text || ''}`.trim());
    const over = t.ended && finished(t.state) ? `ended ${ago(t.ended)}` : '';
    const text = parts.filter(Boolean).join(' · ');
    put(words, text + (text && over ? ' · ' : ''));
    put(endedAt, over);
    endedAt.dateTime = t.ended || '';
    endedAt.title = instant(t.ended);
    line.hidden = !text && !over;
  }

  async function explain() {
    const old = outdated();
    if (finished(t.state) && t.state !== 'skipped' && t.state !== 'cancelled' && !old || active(t.state)) {
      why.hidden = true;
      return;
    }
    try {
      const reasons = await standing((await get(`/tasks/${id}/explain`)).reasons);
      if (finished(t.state) && reasons.length < 2 && !old) { why.hidden = true; return; }
      fill(why, h('h2', {}, old ? 'Its output comes from earlier inputs' : finished(t.state) ? 'Why it did not run' : active(reasons[0].state) ? 'What it waits for' : 'Why it is not running'), h('ol', { class: 'chain' }, reasons.map((r, i) => h('li', {},
        h('p', {}, badge(r.state), i === 0 ? h('strong', {}, labelled(r)) : h('a', { href: href('tasks', r.id), 'data-row': '' }, labelled(r)), ' ', h('span', {}, r.why)),
        r.do && command(r.do)))), old && !t.of && h('div', { class: 'row' }, anew));
      why.hidden = false;
    } catch (e) {
      if (e.name !== 'AbortError') { fill(why, errorBox(e, explain)); why.hidden = false; }
    }
  }

  const taskLinks = (tasks) => h('ul', { class: 'links' }, tasks.map((x) => h('li', {}, h('a', { href: href('tasks', x.id), 'data-row': '' }, badge(...shownState(x)), h('span', { class: 'name' }, labelled(x))))));

  async function parents() {
    const ids = t.needs || [];
    try {
      const some = ids.slice(0, 50);
      const found = some.length ? (await get('/tasks', { ids: some.join(','), with: 'item_label', limit: 50 })).tasks : [];
      if (t.of && !ids.length) {
        fill(family.parents, h('h2', {}, 'Item of'), taskLinks(await standing([await get(`/tasks/${t.of}`)])));
        return;
      }
      fill(family.parents, h('h2', {}, 'Needs ', h('span', { class: 'n' }, ids.length ? number(ids.length) : '')), ids.length ? taskLinks(await standing(found)) : h('p', { class: 'muted' }, 'Nothing: it is a root.'),
        ids.length > some.length && h('p', { class: 'muted' }, `and ${number(ids.length - some.length)} more`));
    } catch (e) { failedIn(family.parents, e, parents); }
  }
  async function children() {
    try {
      const { tasks, more } = await get(`/tasks/${id}/children`, { limit: 50 });
      fill(family.children, h('h2', {}, 'Needed by ', h('span', { class: 'n' }, tasks.length && !more ? number(tasks.length) : '')), tasks.length ? taskLinks(await standing(tasks)) : h('p', { class: 'muted' }, 'Nothing.'),
        more && h('p', { class: 'muted' }, 'and more'));
    } catch (e) { failedIn(family.children, e, children); }
  }
  async function items() {
    if (!t.foreach) return;
    try {
      const bad = (await get('/tasks', { of: t.id, state: FAILED.join(','), with: 'item_label', limit: ITEMS })).tasks; // these are looked for
      const { tasks: first, next } = await get('/tasks', { of: t.id, with: 'item_label', limit: ITEMS });
      const tasks = [...bad, ...first.filter((x) => !bad.some((b) => b.id === x.id))].slice(0, ITEMS);
      fill(family.items, h('h2', {}, 'Items ', h('span', { class: 'n' }, t.items ? number(t.items) : ''), t.foreach.group && h('span', { class: 'muted' }, ` ${t.foreach.group}`)), tasks.length ? taskLinks(tasks) : h('p', { class: 'muted' }, 'They are made when what it needs has finished.'),
        next && plan && h('p', {}, h('a', { href: href('plans', plan.id, 'tasks') + '?q=' + encodeURIComponent(`${t.name}[`) }, 'All of them')));
    } catch (e) { failedIn(family.items, e, items); }
  }
  // standing returns tasks of which each foreach task has the one state that it has with its items: its own is waiting while they run.
  async function standing(tasks) {
    if (!plan || plan.sums.tasks > LARGE || !tasks.some((x) => x.state === 'held')) return tasks;
    const all = await get(`/plans/${plan.id}/foreach-tasks`), state = new Map(all.foreach_tasks.map((f) => [f.id, f.state]));
    return tasks.map((x) => ({ ...x, state: finished(x.state) ? x.state : state.get(x.id) || x.state }));
  }
  // beside leads to the item before this one and the one after it.
  async function beside() {
    const found = t.of && plan && /^(.*)\[(\d+)\]$/.exec(t.name);
    if (!found) return;
    const at = (i) => (i < 0 ? null : get(`/plans/${plan.id}/tasks`, { name: `${found[1]}[${i}]` }).then(({ tasks }) => tasks[0]));
    const [before, after] = await Promise.all([at(Number(found[2]) - 1), at(Number(found[2]) + 1)]);
    const link = (x, label) => (x ? h('a', { href: href('tasks', x.id), title: `${x.name} ${word(x.state)}` }, label) : h('span', { class: 'muted' }, label));
    fill(siblings, link(before, '← Previous item'), link(after, 'Next item →'));
  }
  function failedIn(element, e, f) {
    if (e.name !== 'AbortError') fill(element, errorBox(e, f));
  }
  function attempts(all) {
    const whole = finished(t.state) && t.ended && all[0]?.attempt === 1 && t.attempt > 1 ? between(all[0].from, t.ended) : '';
    const known = t.attempt > 1 || all.length > 1;
    fill(family.attempts, known && [h('h2', {}, 'Attempts'), h('ol', { class: 'attempts' }, all.map((a) => h('li', {},
      h('span', { class: 'num' }, `${a.attempt}`), a.attempt === t.attempt ? badge(...shownState(t)) : badge(...(a.lost ? ['orphaned', 'lost'] : ['failed', 'tried again'])),
      h('span', { class: 'muted num' }, `${clock(a.from)}, ${plural(a.lines, 'line')}`)))),
    whole && h('p', { class: 'muted' }, `${whole} from the first line of the first one to the end, with the pauses between them`)]);
  }

  const refresh = async () => {
    t = await get(`/tasks/${id}`, null, { exact: true });
    render();
    if (attempt() === seen) return;
    seen = attempt();
    follow.read();
  };
  // attempt tells apart what the log is of. A short attempt begins and ends between two looks.
  const attempt = () => [active(t.state), t.attempt, t.started, t.ended].join(' ');
  let seen = attempt();
  render();
  logs.hidden = Boolean(t.foreach); // what it would print is in the logs of its items
  const follow = log(logs, id, { page, running: () => active(t.state), begun: () => t.attempt > 0, told: attempts });
  page.every(1000, tick);
  page.every(1000, async () => { if (!finished(t.state)) await refresh(); });
  page.every(3000, async () => { if (!finished(t.state) && !active(t.state)) await explain(); });
  const large = plan && plan.sums.tasks > LARGE;
  page.every(t.plan && !large ? 10000 : 2000, async () => {
    if (finished(t.state)) await refresh();
    if (t.state === 'succeeded' && plan && !large) { // which changes nothing of the task itself
      const was = outdated();
      plan = await get(`/plans/${t.plan}`);
      if (outdated() !== was) explain();
    }
    if (!finished(t.state) && !family.items.contains(document.activeElement)) await items();
  });
  children();
  items();
  beside().catch(() => { /* the page is whole without */ });
}

// asRan is a command as a shell would take it: where it runs, its variables, and the command with what was put into it. Where a variable's value
// comes from is told in place of the value; secrets the server hides.
function asRan({ run, dir, env, ...rest }) {
  const lookup = (path) => path.trim().split(/\.|\[(\d+)\]/).filter(Boolean).reduce((v, k) => (v === null || v === undefined ? undefined : v[k]), rest);
  const filled = (text) => (typeof text !== 'string' ? text : text.replace(/\$\{\{\s*([\w.[\]-]+)\s*\}\}/g, (whole, path) => {
    const v = lookup(path);
    return v === undefined ? whole : typeof v === 'string' ? v : JSON.stringify(v);
  }));
  const word = (w) => {
    const text = typeof w === 'string' ? filled(w) : JSON.stringify(w);
    return /^[\w@%+=:,./*-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
  };
  const value = (v) => (v?.from_env ? `"$${v.from_env}"` : v?.from_file ? `"$(cat ${word(v.from_file)})"` : word(v));
  const line = Array.isArray(run) ? run.map(word).join(' ') : typeof run === 'string' ? filled(run).replace(/\n$/, '') : pretty(run);
  const used = Object.entries(rest).filter(([name]) => /^[a-z][a-z0-9_]*$/.test(name) && new RegExp(`\\$\\{?${name}\\b`).test(line));
  const variables = [...used, ...Object.entries(env || {})].map(([name, v]) => `${name}=${value(v)}`);
  return [dir && `cd ${word(dir)}`, variables.length && `export ${variables.join(' \\\n  ')}`, line].filter(Boolean).join('\n');
}
