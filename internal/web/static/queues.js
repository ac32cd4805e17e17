// The queues: how full each is, how many of its tasks may run at once, and which params are secret.
import { h, fill, put, arrange, headings, number, empty, errorBox, command } from './dom.js';
import { get, getWithTag, send } from './api.js';
import { ask, action } from './dialog.js';
import { badge } from './states.js';
import { keepText, keepOf } from './keep.js';

export default async function queues({ main, page }) {
  page.title('Queues');
  const list = h('ul', { class: 'list queues' });
  const out = h('div', {}), heads = headings('queue-head', ['State', 'Queue', 'Running', 'Queued']);
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Queues')), h('p', { class: 'muted' }, 'How many tasks of each run at once, over all nodes. What runs already goes on when a limit is changed.'), h('h2', { class: 'off' }, 'All queues'), heads, list, out);
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
      heads.hidden = rows.size === 0;
      arrange(list, found.queues.map((x) => rows.get(x.id).element));
      fill(out, (found.refused || []).map((text) => h('p', { class: 'muted' }, text)), rows.size === 0 && empty('There are no queues yet.', h('p', {}, 'A plan makes those that its tasks need, without a limit. To make one with a limit:'), command('sluice queue create imap --threads 4')));
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
  const tasks = (state) => h('a', { class: 'num', href: `/ui/tasks?${new URLSearchParams({ queue: q.name, state })}` });
  const active = tasks('active'), queued = tasks('queued'), more = h('span', { class: 'muted' });
  const set = action('Settings', () => edit(q, load));
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
      h('span', { class: 'buttons needs-operate' }, set, pause)),
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
        q.node_threads && `${q.node_threads} a node`, q.group && `group: ${q.group}`, q.weight && `weight: ${q.weight}`, q.on_lost && `lost: ${q.on_lost}`, q.secrets?.length && `secret: ${q.secrets.join(', ')}`,
        q.rate && `rate: ${q.rate.starts} in ${q.rate.per}, ${q.rate.burst || q.rate.starts} at once`, q.keep && `kept: ${keepText(q.keep)}`, q.defaults && `by default: ${JSON.stringify(q.defaults)}`].filter(Boolean).join(' · '));
      put(pause, q.state === 'paused' ? 'Resume' : 'Pause');
      set.setAttribute('aria-label', `Settings of ${q.name}`);
      pause.setAttribute('aria-label', `${pause.textContent} ${q.name}`);
    },
  };
  return r;
}

// settings are those of a queue that a change has to name. The others stay as they are.
const settings = (q, threads) => ({ threads, sort: q.sort, pin: q.pin, ignore: q.ignore, node_threads: q.node_threads });

const hasNow = (q) => `it has ${q.threads === null ? 'no limit' : q.threads} now${q.secrets?.length ? `, and keeps ${q.secrets.join(', ')} secret` : ''}`;

async function edit(q, load) {
  let { value, etag } = await getWithTag(`/queues/${q.id}`);
  const had = value.threads === 0 ? remembered.get(q.id) ?? null : value.threads;
  const hid = (value.secrets || []).join(', ');
  const unlimited = h('input', { type: 'radio', name: 'how', checked: had === null });
  const limited = h('input', { type: 'radio', name: 'how', checked: had !== null });
  const n = h('input', { type: 'number', min: '0', max: '1000000', value: had ?? 4, 'aria-label': 'Threads', onfocus: () => { limited.checked = true; } });
  const secrets = h('input', { name: 'secrets', value: hid, placeholder: 'password, *_key', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', 'aria-describedby': 'secrets-note' });
  const kept = keepText(value.keep);
  const keep = h('input', { name: 'keep', value: kept, placeholder: 'succeeded=36h, failed=30d', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', 'aria-describedby': 'keep-note' });
  const agreed = await ask({
    title: `Settings of ${q.name}`, ok: 'Save', body: h('div', { class: 'fields' },
      h('h3', {}, `How many tasks of ${q.name} run at once?`),
      h('label', {}, limited, 'At most', n), h('label', {}, unlimited, 'As many as the nodes have threads for'),
      h('p', { class: 'muted' }, `${number(value.active)} run now, ${number(value.queued)} are queued. 0 pauses the queue.`),
      h('label', { class: 'above' }, h('span', { class: 'strong' }, 'Secret params'), secrets),
      h('p', { class: 'muted', id: 'secrets-note' }, 'Names, with commas between them, of params and outputs that nobody is shown, in any queue; a * stands for any letters. Only an administrator takes one off.'),
      h('label', { class: 'above' }, h('span', { class: 'strong' }, 'Keep finished tasks of no plan'), keep),
      h('p', { class: 'muted', id: 'keep-note' }, 'A time for each state, or forever. A state that is not named goes by the store: 30 days on SQLite, for ever on MongoDB.')),
    submit: async () => {
      const threads = unlimited.checked ? null : n.valueAsNumber;
      if (threads !== null && !(threads >= 0)) throw new Error('Give a number of 0 or more.');
      const body = settings(value, threads);
      if (secrets.value.trim() !== hid) body.secrets = secrets.value.split(',').map((name) => name.trim()).filter(Boolean);
      if (keep.value.trim() !== kept) body.keep = keepOf(keep.value);
      try {
        await send('PUT', `/queues/${q.id}`, body, { headers: { 'If-Match': etag } });
      } catch (e) {
        if (e.code === 'precondition') {
          ({ value, etag } = await getWithTag(`/queues/${q.id}`));
          throw new Error(`Somebody else set it meanwhile: ${hasNow(value)}. Press Save again if yours is to be.`);
        }
        throw e;
      }
    },
  });
  if (agreed) await load();
}
