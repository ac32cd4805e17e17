// The nodes: which are there, and what each of them runs.
import { h, fill, put, arrange, headings, href, labelled, number, plural, duration, between, ago, instant, empty, errorBox, command } from './dom.js';
import { get, send } from './api.js';
import { ask, action } from './dialog.js';
import { badge, took, FAILED } from './states.js';
import { titles } from './tasks.js';

const SHOWN = 12; // tasks of a node, until more are asked for
const PLANS = 5; // that failed last, and as many that run: among their failures are the last ones of nodes
const EACH = 30000; // ms, after which these are looked for again

export default async function nodes({ main, page }) {
  page.title('Nodes');
  const list = h('ul', { class: 'list nodes' });
  const absent = h('p', { class: 'muted', hidden: true });
  const out = h('div', {}), heads = headings('node-head', ['State', 'Node', 'Load', 'Heartbeat']);
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Nodes')), h('p', { class: 'muted' }, 'The processes that claim tasks and run them, and what they run now.'), h('h2', { class: 'off' }, 'All nodes'), heads, list, absent, out);
  const rows = new Map(), titleOf = titles(page.signal);
  let failed = new Map();
  async function load() {
    try {
      const [found, running] = await Promise.all([
        get('/nodes', { counts: 'false' }, { signal: page.signal }), get('/tasks', { state: 'claimed,running', with: 'item_label', limit: 2000 }, { signal: page.signal })]);
      const of = new Map();
      for (const t of running.tasks) {
        if (!of.has(t.instance)) of.set(t.instance, []);
        of.get(t.instance).push(t);
      }
      found.nodes.sort((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id));
      const seen = new Set(found.nodes.map((n) => n.id));
      for (const id of rows.keys()) if (!seen.has(id)) rows.delete(id);
      const queues = found.nodes.some((n) => n.pauses) ? (await get('/queues', { counts: 'false' }, { signal: page.signal })).queues : [];
      const names = new Map(queues.map((q) => [q.id, q.name]));
      found.nodes.forEach((n) => {
        let r = rows.get(n.id);
        if (!r) rows.set(n.id, r = row(n, titleOf));
        r.set(n, of.get(n.id) || [], Boolean(running.next), found.limits[n.name], found.nodes.filter((x) => x.name === n.name && !x.runner).length, names, failed.get(n.name));
      });
      const others = Object.keys(found.limits).filter((name) => !found.nodes.some((n) => n.name === name)).sort();
      absent.hidden = others.length === 0;
      put(absent, `Limits of nodes that are not there now: ${others.map((name) => `${name} ${number(found.limits[name])}`).join(', ')}`);
      heads.hidden = rows.size === 0;
      arrange(list, found.nodes.map((x) => rows.get(x.id).element));
      fill(out, rows.size === 0 && empty('No node is there: nothing runs.', h('p', {}, 'Start one on a machine that reaches the store:'), command('sluice worker')));
    } catch (e) {
      if (e.name !== 'AbortError' && e.code !== 'unreachable') fill(out, errorBox(e, load));
      if (rows.size === 0 && e.code === 'unreachable') throw e;
    }
  }
  page.every(2000, load);
  await load();
  const look = async () => { failed = await lastFailures(page.signal); };
  page.every(EACH, look);
  look().then(load).catch(() => { /* they are looked for again */ });
}

// lastFailures returns the last failed task of each node, as far as the last plans tell.
async function lastFailures(signal) {
  const by = new Map();
  const plans = await Promise.all(['failed', 'running'].map((state) => get('/plans', { state, limit: PLANS }, { signal })));
  for (const p of plans.flatMap((found) => found.plans).filter((p) => p.sums.broken)) {
    const { tasks } = await get(`/plans/${p.id}/tasks`, { state: FAILED.join(','), newest: true, with: 'item_label', limit: 200 }, { signal });
    for (const t of tasks.filter((t) => t.node && t.ended)) {
      if (!(Date.parse(by.get(t.node)?.ended) >= Date.parse(t.ended))) by.set(t.node, { ...t, title: `${p.name} #${p.run}` });
    }
  }
  return by;
}

// since is when a node's process registered: its id begins with that second.
const since = (n) => new Date(parseInt(n.id.slice(0, 8), 16) * 1000).toISOString();

function row(n, titleOf) {
  const state = badge('alive'), more = h('span', { class: 'muted' }), use = h('span', { class: 'num' }), heard = h('span', { class: 'muted num' });
  const bar = h('span', { class: 'meter', 'aria-hidden': 'true' }, h('span', {}));
  const tasks = h('ul', { class: 'links' }), paused = h('p', { class: 'muted', hidden: true });
  const last = h('p', { class: 'last', hidden: true }), plugins = h('p', { class: 'muted plugins' });
  const links = new Map(); // by task
  const whole = h('button', { type: 'button', class: 'quiet', onclick: () => { all = !all; list(); } }), none = h('li', { class: 'muted' }, 'It runs nothing.');
  const rest = h('li', { class: 'rest' }, whole);
  let all = false, runs = [], shownLast = '', most; // most: its limit; undefined: none
  function list() {
    const some = all ? runs : runs.slice(0, SHOWN), seen = new Set(some.map((t) => t.id));
    for (const id of links.keys()) if (!seen.has(id)) links.delete(id);
    for (const t of some) {
      if (!links.has(t.id)) links.set(t.id, link(t, titleOf));
      links.get(t.id).set(t);
    }
    put(whole, all ? 'Fewer' : `All ${number(runs.length)}`);
    arrange(tasks, [...some.map((t) => links.get(t.id).element), ...(runs.length > SHOWN ? [rest] : []), ...(runs.length ? [] : [none])]);
  }
  const limit = action('Limit', async () => {
    const input = h('input', { type: 'number', min: '0', max: '100000', 'aria-label': 'Tasks at once', placeholder: 'no limit', value: most === undefined ? '' : String(most) });
    await ask({ title: `How many tasks does ${n.name} run at once?`, ok: 'Save', body: h('div', { class: 'fields' }, h('label', {}, 'At most', input),
      h('p', { class: 'muted' }, `Over all its processes; this one has ${plural(n.threads, 'thread')}. Leave it empty to take the limit off; what runs goes on.`)),
    submit: () => send('PUT', `/nodes/${encodeURIComponent(n.name)}`, { maxthreads: input.value === '' ? null : input.valueAsNumber }) });
  });
  return {
    element: h('li', { class: 'node' }, h('div', { class: 'noderow' }, h('span', {}, state), h('span', { class: 'who' }, h('span', { class: 'name' }, n.name), more),
      h('span', { class: 'fullness' }, use, bar), heard, h('span', { class: 'buttons needs-operate' }, limit)), last, paused, tasks, plugins),
    set(now, running, cut, limited, processes, names, failed) {
      n = now;
      most = limited;
      state.set(n.state);
      put(more, [`up ${between(since(n))}`, `${n.host}, process ${n.pid}`, n.runner && 'runs one task', n.plan && 'for one plan only', n.version].filter(Boolean).join(' · '));
      put(plugins, n.plugins.length ? `Plugins: ${n.plugins.join(', ')}` : '');
      last.hidden = !failed;
      if (failed && shownLast !== `${failed.id} ${ago(failed.ended)}`) {
        shownLast = `${failed.id} ${ago(failed.ended)}`;
        fill(last, 'Last failure: ', h('a', { href: href('tasks', failed.id) }, labelled(failed)), ' of ', h('a', { href: href('plans', failed.plan) }, failed.title), `, ${ago(failed.ended)}`, failed.detail && `: ${failed.detail.split('\n')[0]}`);
      }
      const atMost = most === undefined || n.runner ? '' : `, limited to ${number(most)}${processes > 1 ? ` in all ${number(processes)} processes` : ''}`;
      put(use, `${number(running.length)}${cut ? ' or more' : ''} of ${plural(n.threads, 'thread')}${atMost}`);
      bar.firstChild.style.setProperty('width', `${n.threads ? Math.min(100, running.length / n.threads * 100) : 0}%`);
      put(heard, n.state === 'alive' ? `heard ${n.age < 1.5 ? 'just now' : duration(Math.round(n.age) * 1000) + ' ago'}` : `silent for ${duration(n.age * 1000)}`);
      const pauses = (n.pauses || []).filter((p) => p.each);
      paused.hidden = pauses.length === 0;
      put(paused, pauses.map((p) => `It leaves queue ${names.get(p.queue) || p.queue} to other nodes, and tries one task each ${p.each}: ${p.why}`).join('; '));
      limit.setAttribute('aria-label', `Limit ${n.name}`);
      runs = running;
      list();
    },
  };
}

// link is a task that a node runs.
function link(first, titleOf) {
  const state = badge(first.state), time = h('span', { class: 'muted num' }), of = h('span', { class: 'muted plan' });
  if (first.plan) titleOf(first.plan).then((title) => put(of, title));
  return {
    element: h('li', {}, h('a', { href: href('tasks', first.id), 'data-row': '' }, state, h('span', { class: 'name' }, labelled(first)), of, time)),
    set(t) {
      state.set(t.state);
      put(time, took(t)); // one that is claimed has not begun: an earlier attempt may have
      time.title = t.started && t.state === 'running' ? `began ${instant(t.started)}` : '';
    },
  };
}
