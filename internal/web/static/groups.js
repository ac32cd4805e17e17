// The groups of queues: a tree with the queues of each group, what waits and runs in them, and which groups are paused.
import { h, fill, put, arrange, href, number, empty, errorBox, command } from './dom.js';
import { get, getWithTag, send } from './api.js';
import { action } from './dialog.js';
import { badge } from './states.js';

// rows of the tree, from the top: each group, then its queues, then the groups in it.
function tree(groups, queues) {
  const byName = new Map(groups.map((g) => [g.name, g]));
  const rows = [];
  const walk = (g, depth, stopped) => {
    const row = { key: `g ${g.name}`, group: g, name: g.name, depth, stopped: stopped || Boolean(g.paused), active: 0, queued: 0 };
    rows.push(row);
    const add = (one) => { row.active += one.active; row.queued += one.queued; };
    for (const q of queues.filter((x) => x.group === g.name)) {
      rows.push({ key: `q ${q.id}`, queue: q, name: q.name, depth: depth + 1, stopped: row.stopped || q.state === 'paused', active: q.active, queued: q.queued });
      add(q);
    }
    if (depth === 0) groups.filter((x) => x.parent === g.name).forEach((x) => add(walk(x, 1, row.stopped)));
    return row;
  };
  groups.filter((g) => !byName.has(g.parent)).forEach((g) => walk(g, 0, false));
  return rows;
}

// isType reports whether a queue is an activity type of OSTE, whose activities have a page.
const isType = (q) => q.plugin === 'http' && q.group.includes('.') && q.name.startsWith(`${q.group}.`);

const rateText = (r) => r && `rate: ${r.starts} in ${r.per}, ${r.burst || r.starts} at once`;

export default async function groups({ main, page }) {
  page.title('Groups');
  const list = h('ul', { class: 'list groups' }), out = h('div', {});
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Groups')),
    h('p', { class: 'muted' }, 'Groups of queues, with what runs and waits in each. Nothing of a paused group starts; what runs already goes on.'), h('h2', { class: 'off' }, 'All groups'), list, out);
  const rows = new Map();
  async function load() {
    try {
      const [found, queues] = await Promise.all([get('/groups', null, { signal: page.signal }), get('/queues', null, { signal: page.signal })]);
      const all = tree(found.groups, queues.queues);
      const seen = new Set(all.map((r) => r.key));
      for (const key of rows.keys()) if (!seen.has(key)) rows.delete(key);
      for (const r of all) {
        if (!rows.has(r.key)) rows.set(r.key, row(r, load));
        rows.get(r.key).set(r);
      }
      arrange(list, all.map((r) => rows.get(r.key).element));
      fill(out, rows.size === 0 && empty('There are no groups yet.', h('p', {}, 'To limit and pause several queues together:'), command('sluice group create acme --rate 100/s'), command('sluice queue set imap --group acme')));
    } catch (e) {
      if (e.name !== 'AbortError' && e.code !== 'unreachable') fill(out, errorBox(e, load));
      if (rows.size === 0 && e.code === 'unreachable') throw e;
    }
  }
  page.every(2000, load);
  await load();
}

function row(r, load) {
  const state = badge('open'), active = h('span', { class: 'num fullness' }), queued = h('span', { class: 'num' }), more = h('span', { class: 'muted' });
  const pause = r.group && action('Pause', async () => {
    const path = `/groups/${encodeURIComponent(r.name)}`;
    const { value, etag } = await getWithTag(path);
    const { name, changed, rate_spent, ...settings } = value;
    await send('PUT', path, { ...settings, paused: !value.paused }, { headers: { 'If-Match': etag } });
    await load();
  });
  const element = h('li', { class: 'queue' }, h('span', {}, state),
    h('span', { class: 'who' }, r.group ? h('span', { class: 'name' }, r.name) : h('a', { class: 'name', href: isType(r.queue) ? href('groups', r.name) : '/ui/queues' }, r.name), more),
    active, h('span', { class: 'waits' }, queued), h('span', { class: 'buttons needs-operate' }, pause));
  return {
    element,
    set(now) {
      r = now;
      element.classList.toggle('in1', r.depth === 1);
      element.classList.toggle('in2', r.depth === 2);
      state.set(r.stopped ? 'paused' : r.queue ? r.queue.state : 'open');
      put(active, `${number(r.active)} running`);
      put(queued, `${number(r.queued)} queued`);
      queued.classList.toggle('muted', !r.queued);
      const of = r.group || r.queue;
      put(more, [r.group ? 'group' : 'queue', of.weight && `weight: ${of.weight}`, rateText(of.rate), r.group && r.stopped && !r.group.paused && 'its parent is paused'].filter(Boolean).join(' · '));
      if (!pause) return;
      put(pause, r.group.paused ? 'Resume' : 'Pause');
      pause.setAttribute('aria-label', `${pause.textContent} ${r.name}`);
    },
  };
}
