// The nodes: which are there, and what each of them runs.
import { h, fill, put, arrange, href, number, plural, between, duration, empty, errorBox, command } from './dom.js';
import { get, send } from './api.js';
import { ask, action } from './dialog.js';
import { badge } from './states.js';

const SHOWN = 8; // tasks of a node, until more are asked for

export default async function nodes({ main, page }) {
  page.title('Nodes');
  const list = h('ul', { class: 'list nodes' });
  const absent = h('p', { class: 'muted', hidden: true });
  const out = h('div', {});
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Nodes')), h('p', { class: 'muted' }, 'The processes that claim tasks and run them, and what they run now.'), list, absent, out);
  const rows = new Map();
  async function load() {
    try {
      const [found, running] = await Promise.all([
        get('/nodes', { counts: 'false' }, { signal: page.signal }), get('/tasks', { state: 'claimed,running', limit: 2000 }, { signal: page.signal })]);
      const of = new Map();
      for (const t of running.tasks) {
        if (!of.has(t.instance)) of.set(t.instance, []);
        of.get(t.instance).push(t);
      }
      found.nodes.sort((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id));
      const seen = new Set(found.nodes.map((n) => n.id));
      for (const id of rows.keys()) if (!seen.has(id)) rows.delete(id);
      found.nodes.forEach((n) => {
        let r = rows.get(n.id);
        if (!r) rows.set(n.id, r = row(n));
        r.set(n, of.get(n.id) || [], Boolean(running.next), found.limits[n.name], found.nodes.filter((x) => x.name === n.name && !x.runner).length);
      });
      const others = Object.keys(found.limits).filter((name) => !found.nodes.some((n) => n.name === name)).sort();
      absent.hidden = others.length === 0;
      put(absent, `Limits of nodes that are not there now: ${others.map((name) => `${name} ${number(found.limits[name])}`).join(', ')}`);
      arrange(list, found.nodes.map((x) => rows.get(x.id).element));
      fill(out, rows.size === 0 && empty('No node is there: nothing runs.', h('p', {}, 'Start one on a machine that reaches the store:'), command('sluice den')));
    } catch (e) {
      if (e.name !== 'AbortError' && e.code !== 'unreachable') fill(out, errorBox(e, load));
      if (rows.size === 0 && e.code === 'unreachable') throw e;
    }
  }
  page.every(2000, load);
  await load();
}

function row(n) {
  const state = badge('alive'), more = h('span', { class: 'muted' }), use = h('span', { class: 'num' }), heard = h('span', { class: 'muted num' });
  const bar = h('span', { class: 'meter', 'aria-hidden': 'true' }, h('span', {}));
  const tasks = h('ul', { class: 'links' });
  let all = false, last = '', most; // most: its limit; undefined: none
  const limit = action('Limit', async () => {
    const input = h('input', { type: 'number', min: '0', max: '100000', 'aria-label': 'Tasks at once', placeholder: 'no limit', value: most === undefined ? '' : String(most) });
    await ask({ title: `How many tasks does ${n.name} run at once?`, ok: 'Set', body: h('div', { class: 'fields' }, h('label', {}, 'At most', input),
      h('p', { class: 'muted' }, `Over all its processes; this one has ${plural(n.threads, 'thread')}. Leave it empty to take the limit off; what runs goes on.`)),
    submit: () => send('PUT', `/nodes/${encodeURIComponent(n.name)}`, { maxthreads: input.value === '' ? null : input.valueAsNumber }) });
  });
  return {
    element: h('li', { class: 'node' }, h('div', { class: 'noderow' }, h('span', {}, state), h('span', { class: 'who' }, h('span', { class: 'name' }, n.name), more),
      h('span', { class: 'fullness' }, use, bar), heard, h('span', { class: 'buttons needs-operate' }, limit)), tasks),
    set(now, running, cut, limited, processes) {
      n = now;
      most = limited;
      state.set(n.state);
      put(more, [`${n.host}, process ${n.pid}`, n.runner && 'runs one task', n.plan && 'for one plan only', n.plugins.join(', '), n.version].filter(Boolean).join(' · '));
      const atMost = most === undefined || n.runner ? '' : `, limited to ${number(most)}${processes > 1 ? ` in all ${number(processes)} processes` : ''}`;
      put(use, `${number(running.length)}${cut ? ' or more' : ''} of ${plural(n.threads, 'thread')}${atMost}`);
      bar.firstChild.style.setProperty('width', `${n.threads ? Math.min(100, running.length / n.threads * 100) : 0}%`);
      put(heard, n.state === 'alive' ? `heard ${n.age < 1.5 ? 'just now' : duration(Math.round(n.age) * 1000) + ' ago'}` : `silent for ${duration(n.age * 1000)}`);
      const now2 = JSON.stringify([running.map((t) => [t.id, t.state, Math.floor(Date.now() / 2000)]), all]);
      if (now2 === last) return;
      last = now2;
      const had = tasks.contains(document.activeElement) && document.activeElement.getAttribute('href');
      fill(tasks, (all ? running : running.slice(0, SHOWN)).map((t) => h('li', {}, h('a', { href: href('tasks', t.id), 'data-row': '' }, badge(t.state), h('span', { class: 'name' }, t.name || t.id),
        h('span', { class: 'muted num' }, between(t.started))))),
      running.length > SHOWN && h('li', {}, h('button', { type: 'button', class: 'quiet', onclick: () => { all = !all; last = ''; } }, all ? 'Fewer' : `All ${number(running.length)}`)),
      !running.length && h('li', { class: 'muted' }, 'It runs nothing.'));
      if (had) for (const a of tasks.querySelectorAll('a')) if (a.getAttribute('href') === had) a.focus();
    },
  };
}
