// The balance page: how queues share what they may run together (QueueBalance), and the document that says so.
import { h, fill, empty, errorBox, ago, number, command } from './dom.js';
import { get, send } from './api.js';
import { badge } from './states.js';

const DAYS = { '*': 'every day', 0: 'Sunday', 1: 'Monday', 2: 'Tuesday', 3: 'Wednesday', 4: 'Thursday', 5: 'Friday', 6: 'Saturday' };
const WRITTEN = ['status', 'message', 'timestamp', '_id']; // by who balances, not by people

// compact is a value as JSON of which a list of plain values takes one line.
function compact(v, indent = '') {
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  const within = indent + '  ', list = Array.isArray(v);
  if (list && v.every((x) => x === null || typeof x !== 'object')) return `[${v.map((x) => JSON.stringify(x)).join(', ')}]`;
  const lines = list ? v.map((x) => compact(x, within)) : Object.entries(v).map(([k, x]) => `${JSON.stringify(k)}: ${compact(x, within)}`);
  return lines.length ? `${list ? '[' : '{'}\n${within}${lines.join(`,\n${within}`)}\n${indent}${list ? ']' : '}'}` : '{}';
}

export default async function balance({ main, page }) {
  page.title('Balance');
  const status = h('div', {}), seen = h('div', { class: 'columns' });
  const text = h('textarea', { class: 'plain', rows: '14', spellcheck: 'false', 'aria-label': 'The document, as JSON', oninput: () => { said.textContent = ''; } });
  const said = h('p', { class: 'problem', role: 'status' });
  const save = h('button', { type: 'submit', class: 'primary' }, 'Save');
  let was = {};
  const form = h('form', { onsubmit: async (e) => {
    e.preventDefault();
    said.className = 'problem';
    let now;
    try { now = JSON.parse(text.value); } catch (p) {
      said.textContent = `It is no JSON: ${p.message}`;
      return;
    }
    if (now === null || typeof now !== 'object' || Array.isArray(now)) {
      said.textContent = 'It has to be an object, { … }.';
      return;
    }
    const gone = Object.keys(was).filter((k) => !(k in now));
    if (gone.length) {
      said.textContent = `Keys stay once they are there: give ${gone.join(', ')} an empty value instead of leaving it out.`;
      return;
    }
    const changed = Object.fromEntries(Object.entries(now).filter(([k, v]) => JSON.stringify(v) !== JSON.stringify(was[k])));
    save.disabled = true;
    try {
      if (Object.keys(changed).length) await send('PATCH', '/balance', changed);
      await load(true);
      said.className = 'said';
      said.textContent = Object.keys(changed).length ? `Saved: ${Object.keys(changed).join(', ')}. It holds within seconds, where a node balances.` : 'Nothing was changed.';
    } catch (p) {
      said.textContent = p.detail || p.message;
    }
    save.disabled = false;
  } }, h('h2', {}, 'The document'), h('p', { class: 'muted' }, 'Sets of queues, the first being the default; ', h('code', {}, 'max_tasks'), ' from a day and a time on; ', h('code', {}, 'disabled'), ' until seconds since 1970, or null.'),
  text, said, h('div', { class: 'row needs-operate' }, save, h('button', { type: 'button', class: 'quiet', onclick: () => load(true) }, 'Discard changes')));
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Balance')), h('p', { class: 'muted' }, 'How queues share what they may run together, by day, time and priority.'), status, seen, form);

  async function load(anew) {
    let document;
    try {
      ({ document } = await get('/balance', null, { signal: page.signal }));
    } catch (e) {
      if (e.name === 'AbortError') return;
      form.hidden = e.code === 'unsupported';
      fill(status, errorBox(e, () => load(true)));
      return;
    }
    const d = document || {};
    const settings = Object.fromEntries(Object.entries(d).filter(([k]) => !WRITTEN.includes(k)));
    if (anew) {
      was = settings;
      text.value = compact(document ? settings : { queues: [[]], max_tasks: { '* 00:00': 10 }, disabled: null });
    }
    fill(status, state(d, document));
    fill(seen, document && [sets(d), times(d)]);
  }
  function state(d, there) {
    if (!there) return empty('Queues are not balanced.', h('p', {}, 'There is no document yet: each queue keeps its own limit. Save one below, and start a node that balances:'), command('sluice worker --config FILE'));
    const old = d.timestamp && Date.now() / 1000 - d.timestamp > 60;
    const until = d.disabled && d.disabled * 1000 > Date.now();
    return [h('p', { class: 'row' }, badge(old || until ? 'paused' : d.status || 'silent', until ? 'disabled' : old ? 'nobody balances' : d.status || 'nobody balances yet'), h('span', {}, d.message || ''),
      d.timestamp ? h('span', { class: 'muted' }, `written ${ago(d.timestamp * 1000)}`) : null),
    (old || !d.status) && !until && h('div', { class: 'hint' }, h('p', {}, 'What is written here holds once a node balances. To start one:'), command('sluice worker --config FILE'))];
  }
  function sets(d) {
    const all = Array.isArray(d.queues) ? d.queues : [];
    return h('section', {}, h('h2', {}, 'Who comes first'), all.length
      ? h('ol', { class: 'sets' }, [...all.slice(1), all[0]].map((set, i, l) => h('li', {}, Array.isArray(set) && set.length ? set.map(String).join(', ') : 'no queue', i === l.length - 1 ? h('span', { class: 'muted' }, ' (what the others leave)') : '')))
      : h('p', { class: 'muted' }, 'No queue is named.'));
  }
  function times(d) {
    const all = Object.entries(d.max_tasks && typeof d.max_tasks === 'object' ? d.max_tasks : {});
    return h('section', {}, h('h2', {}, 'Tasks together'), all.length ? h('table', {}, h('thead', {}, h('tr', {}, ['Day', 'From', 'At most'].map((w) => h('th', { scope: 'col' }, w)))),
      h('tbody', {}, all.map(([at, n]) => {
        const [day, time] = at.split(' ');
        return h('tr', {}, h('td', {}, DAYS[day] || day), h('td', { class: 'num' }, time || ''), h('td', { class: 'num' }, Number.isFinite(Number(n)) ? number(Number(n)) : String(n)));
      }))) : h('p', { class: 'muted' }, 'No number is given.'));
  }
  page.every(5000, () => load(false));
  await load(true);
}
