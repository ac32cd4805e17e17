// The queues: how full each is, and how many of its tasks may run at once.
import { h, fill, put, arrange, number, empty, errorBox, command } from './dom.js';
import { get, getWithTag, send } from './api.js';
import { ask, action } from './dialog.js';
import { badge } from './states.js';

export default async function queues({ main, page }) {
  page.title('Queues');
  const list = h('ul', { class: 'list queues' });
  const out = h('div', {});
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Queues')), h('p', { class: 'muted' }, 'How many tasks of each run at once, over all nodes. What runs already goes on when a limit is changed.'), list, out);
  const rows = new Map();
  async function load() {
    try {
      const found = await get('/queues', null, { signal: page.signal });
      const seen = new Set(found.queues.map((q) => q.id));
      for (const id of rows.keys()) if (!seen.has(id)) rows.delete(id);
      found.queues.forEach((q) => {
        let r = rows.get(q.id);
        if (!r) rows.set(q.id, r = row(q, load));
        r.set(q);
      });
      arrange(list, found.queues.map((x) => rows.get(x.id).element));
      fill(out, rows.size === 0 && empty('There are no queues yet.', h('p', {}, 'A plan makes those that its tasks need, without a limit. To make one with a limit:'), command('sluice queue create imap --threads 4')));
    } catch (e) {
      if (e.name !== 'AbortError' && e.code !== 'unreachable') fill(out, errorBox(e, load));
      if (rows.size === 0 && e.code === 'unreachable') throw e;
    }
  }
  page.every(2000, load);
  await load();
}

const remembered = new Map(); // threads that queues had before they were paused here

function row(q, load) {
  const state = badge('open');
  const bar = h('span', { class: 'meter', 'aria-hidden': 'true' }, h('span', {}));
  const active = h('span', { class: 'num' }), queued = h('span', { class: 'num' }), more = h('span', { class: 'muted' });
  const threads = action('Threads', () => edit(q, load));
  const pause = action('Pause', async () => {
    if (q.state === 'paused') return edit(q, load);
    const { value, etag } = await getWithTag(`/queues/${q.id}`);
    remembered.set(q.id, value.threads);
    await send('PUT', `/queues/${q.id}`, settings(value, 0), { headers: { 'If-Match': etag } });
    await load();
  });
  const r = {
    element: h('li', { class: 'queue' },
      h('span', {}, state), h('span', { class: 'who' }, h('span', { class: 'name' }, q.name), more),
      h('span', { class: 'fullness' }, active, bar), h('span', { class: 'waits' }, queued),
      h('span', { class: 'buttons needs-operate' }, threads, pause)),
    set(now) {
      q = now;
      state.set(q.state);
      put(active, q.threads === null ? `${number(q.active)} running, no limit` : q.threads === 0 ? `${number(q.active)} running, none is started` : `${number(q.active)} of ${number(q.threads)} running`);
      bar.hidden = !q.threads; // without a limit there is nothing that could be full
      bar.firstChild.style.setProperty('width', `${q.threads ? Math.min(100, q.active / q.threads * 100) : 0}%`);
      bar.classList.toggle('s-full', q.state === 'full');
      put(queued, `${number(q.queued)} queued`);
      queued.classList.toggle('muted', !q.queued);
      put(more, [q.plugin !== q.name && q.plugin, q.sort !== 'default' && q.sort, q.pin?.length && `only on ${q.pin.join(', ')}`, q.ignore?.length && `not on ${q.ignore.join(', ')}`,
        q.node_threads && `${q.node_threads} a node`, q.on_lost && `lost: ${q.on_lost}`].filter(Boolean).join(' · '));
      put(pause, q.state === 'paused' ? 'Resume' : 'Pause');
      threads.setAttribute('aria-label', `Threads of ${q.name}`);
      pause.setAttribute('aria-label', `${pause.textContent} ${q.name}`);
    },
  };
  return r;
}

const settings = (q, threads) => ({ threads, sort: q.sort, pin: q.pin, ignore: q.ignore, node_threads: q.node_threads, on_lost: q.on_lost });

async function edit(q, load) {
  let { value, etag } = await getWithTag(`/queues/${q.id}`);
  const had = value.threads === 0 ? remembered.get(q.id) ?? null : value.threads;
  const unlimited = h('input', { type: 'radio', name: 'how', checked: had === null });
  const limited = h('input', { type: 'radio', name: 'how', checked: had !== null });
  const n = h('input', { type: 'number', min: '0', max: '1000000', value: had ?? 4, 'aria-label': 'Threads', onfocus: () => { limited.checked = true; } });
  const agreed = await ask({
    title: `How many tasks of ${q.name} run at once?`, ok: 'Set', body: h('div', { class: 'fields' },
      h('label', {}, limited, 'At most', n), h('label', {}, unlimited, 'As many as the nodes have threads for'),
      h('p', { class: 'muted' }, `${number(value.active)} run now, ${number(value.queued)} are queued. 0 pauses the queue.`)),
    submit: async () => {
      const threads = unlimited.checked ? null : n.valueAsNumber;
      if (threads !== null && !(threads >= 0)) throw new Error('Give a number of 0 or more.');
      try {
        await send('PUT', `/queues/${q.id}`, settings(value, threads), { headers: { 'If-Match': etag } });
      } catch (e) {
        if (e.code === 'precondition') {
          ({ value, etag } = await getWithTag(`/queues/${q.id}`));
          throw new Error(`Somebody else set it meanwhile: it has ${value.threads === null ? 'no limit' : value.threads} now. Press Set again if yours is to be.`);
        }
        throw e;
      }
    },
  });
  if (agreed) await load();
}
