// The activities of a type of OSTE, which is a queue of HTTP requests: what waits, what succeeded, and the dead letters. Each shows what was sent and
// what came back on each try. Dead letters run again from here, one by one or all of them.
import { h, fill, put, arrange, href, number, plural, instant, ago, pretty, empty, errorBox } from './dom.js';
import { get, post } from './api.js';
import { remember } from './address.js';
import { action } from './dialog.js';
import { badge } from './states.js';

const OSTE = '/oste/v1';
const KINDS = { failed: ['Dead letters', 'failed'], waiting: ['Waiting', 'point-in-time'], succeeded: ['Successful', 'successful'] };

export default async function activities({ main, params, query, page }) {
  const id = params.type;
  const type = await get(`${OSTE}/activity-types/${encodeURIComponent(id)}`, null, { signal: page.signal });
  page.title(id);
  let kind = KINDS[query.get('show')] ? query.get('show') : 'failed';
  const pick = h('select', { 'aria-label': 'Which activities', onchange: () => { kind = pick.value; remember({ show: kind }); rows.clear(); load(); } },
    Object.entries(KINDS).map(([word, [title]]) => h('option', { value: word }, title)));
  pick.value = kind;
  const how = h('span', { class: 'muted' }), said = h('p', { class: 'said', role: 'status' }), out = h('div', {});
  const list = h('ul', { class: 'list activities' }), rows = new Map();
  const all = action('Run all again', async () => {
    let n = 0, after = '';
    do {
      const done = await post(`${OSTE}/failed-activities/retry?${new URLSearchParams({ type: id, ...(after && { after }) })}`);
      n += done.changed;
      after = done.next;
    } while (after);
    put(said, `${plural(n, 'activity', 'activities')} queued again.`);
    await load();
  }, { class: 'needs-operate' });
  fill(main, h('nav', { class: 'crumbs', 'aria-label': 'Where this is' }, h('a', { href: '/ui/groups' }, 'Groups'), ' / ', h('span', {}, type.Solution)),
    h('div', { class: 'head' }, h('h1', {}, type.Name), h('div', { class: 'buttons' }, all)),
    h('p', { class: 'meta' }, [`${type.Verb} ${type.UriPattern}`, type.Retries && plural(type.Retries, 'more try', 'more tries'), type.ParameterExpected].filter(Boolean).join(' · ')),
    h('div', { class: 'toolbar' }, pick, how), said, h('h2', { class: 'off' }, 'Activities'), list, out);

  async function load() {
    try {
      const shown = kind, found = await get(`${OSTE}/${KINDS[kind][1]}-activities`, { type: id }, { signal: page.signal });
      if (shown !== kind) return;
      const keys = found.items.map((a) => [a.id, a.State, a.Tries, a.Date].join(' '));
      for (const key of rows.keys()) if (!keys.includes(key)) rows.delete(key);
      found.items.forEach((a, i) => { if (!rows.has(keys[i])) rows.set(keys[i], row(a, shown, load)); });
      arrange(list, keys.map((key) => rows.get(key)));
      const ways = new Map();
      for (const a of found.items) if (a.Reason) ways.set(a.Reason, (ways.get(a.Reason) || 0) + 1);
      put(how, `${number(found.items.length)}${found.next ? ' and more' : ''}${ways.size ? `: ${[...ways].map(([way, n]) => `${number(n)} by ${way}`).join(', ')}` : ''}`);
      all.hidden = kind !== 'failed' || rows.size === 0;
      fill(out, rows.size === 0 && empty({ failed: 'There are no dead letters.', waiting: 'Nothing waits.', succeeded: 'None has succeeded, or they were kept long enough.' }[kind]));
    } catch (e) {
      if (e.name !== 'AbortError' && e.code !== 'unreachable') fill(out, errorBox(e, load));
    }
  }
  page.every(2000, load);
  await load();
}

function row(a, kind, load) {
  const tries = h('ol', { class: 'tries' });
  const at = a.DateExecuted || a.Date;
  const again = kind === 'failed' && action('Run again', async () => {
    await post(`${OSTE}/failed-activities/${a.id}/retry`);
    await load();
  }, { class: 'needs-operate' });
  again?.setAttribute?.('aria-label', `Run again: ${a.Object || a.id}`);
  const more = kind !== 'waiting' && h('details', { ontoggle: async () => {
    if (!more.open || tries.children.length) return;
    try {
      const { LogDetails } = await get(`${OSTE}/${KINDS[kind][1]}-activities/${a.id}`);
      fill(tries, (LogDetails || []).map(shownTry));
    } catch (e) { fill(tries, h('li', {}, errorBox(e))); }
  } }, h('summary', {}, a.Detail || 'What was sent, and what came back'), tries);
  return h('li', { class: 'activity' }, h('div', { class: 'row' }, badge(a.State),
    h('a', { class: 'name', href: href('tasks', a.id) }, a.Object || a.id), at && h('time', { datetime: at, title: instant(at), class: 'muted' }, kind === 'waiting' ? instant(at) : ago(at)),
    a.Tries > 0 && h('span', { class: 'muted' }, plural(a.Tries, 'try', 'tries')), again), more);
}

// shownTry is a try: the request, and the answer or why there is none.
function shownTry(t) {
  const { Sent: sent, CameBack: back } = t;
  if (!sent) return h('li', { class: 'muted' }, t.Text);
  return h('li', {}, h('p', { class: 'muted' }, `Try ${t.Try}, ${instant(t.At)}`),
    h('pre', { class: 'code' }, [`${sent.Method} ${sent.Uri}`, sent.Body !== undefined && pretty(sent.Body)].filter(Boolean).join('\n\n')),
    h('pre', { class: 'code' }, back ? [[back.Status, ...Object.entries(back.Headers || {}).map(([name, value]) => `${name}: ${value}`)].join('\n'), back.Body, back.Cut && '…'].filter(Boolean).join('\n\n') : t.Error));
}
