// The schedules: when each fires next, how its last occurrences ended, and one of them with its instants and occurrences.
import { h, fill, put, arrange, href, plural, duration, serverNow, instant, between, empty, errorBox, command, copied, folded } from './dom.js';
import { get, post } from './api.js';
import { ask, action } from './dialog.js';
import { badge, icon } from './states.js';
import { facts } from './plan.js';

// stateOf is the state and the word of a schedule.
const stateOf = (s) => (s.paused ? ['paused', 'paused'] : s.next ? ['alive', 'active'] : ['succeeded', 'over']);
// shapes are the states of tasks whose shapes occurrences have.
const shapes = { waiting: 'held', starting: 'claimed', started: 'running', gone: 'orphaned' };
const shape = (o) => shapes[o.state] || o.state;

const timetable = (s) => [s.cron || `every ${s.every}`, s.zone && s.zone !== 'UTC' && s.zone].filter(Boolean).join(' ');
const starts = (s) => (s.task ? `a task in ${s.task.queue}` : `the plan ${s.plan.source || 'of its own file'}`);
const zoned = (s) => {
  try {
    return new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', timeZone: s.zone || 'UTC' });
  } catch { // a zone that this browser does not know
    return new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' });
  }
};
const until = (at) => {
  const ms = new Date(at).getTime() - serverNow();
  return ms > 0 ? `in ${duration(ms)}` : 'now';
};
const target = (o) => (o.task ? href('tasks', o.task) : o.plan ? href('plans', o.plan) : null);
const occurrences = (s) => [...(s.last || []), ...(s.open || [])].sort((a, b) => a.at.localeCompare(b.at));

// strip has a shape for each of the last occurrences, the newest at the right.
function strip(s) {
  const at = zoned(s);
  return h('span', { class: 'strip' }, occurrences(s).slice(-20).map((o) => {
    const title = `${at.format(new Date(o.at))}: ${o.state}${o.reason ? `, ${o.reason}` : ''}`, to = target(o);
    return to ? h('a', { href: to, title, 'aria-label': title }, icon(shape(o))) : h('span', { class: 'still', title, role: 'img', 'aria-label': title }, icon(shape(o)));
  }));
}

// buttons are those that change a schedule. now returns it as it is.
function buttons(now, load) {
  const pause = action('Pause', async () => {
    const s = now();
    if (s.paused) {
      await post(`/schedules/${encodeURIComponent(s.name)}/resume`);
    } else {
      const why = h('input', { 'aria-label': 'Why', maxlength: '500', autocomplete: 'off' });
      await ask({ title: `Pause ${s.name}?`, ok: 'Pause', body: h('div', { class: 'fields' }, h('label', { class: 'above' }, h('span', { class: 'strong' }, 'Why'), why),
        h('p', { class: 'muted' }, 'It fires no more until it is resumed. What it has started goes on. Instants of the pause are not made up for.')),
      submit: () => post(`/schedules/${encodeURIComponent(s.name)}/pause`, { why: why.value }) });
    }
    await load();
  }, { class: 'needs-operate' });
  const run = action('Run now', async () => {
    await post(`/schedules/${encodeURIComponent(now().name)}/run`);
    await load();
  }, { class: 'needs-submit' });
  return {
    elements: [run, pause],
    set(s) {
      put(pause, s.paused ? 'Resume' : 'Pause');
      pause.setAttribute('aria-label', `${pause.textContent} ${s.name}`);
      run.setAttribute('aria-label', `Run now: ${s.name}`);
    },
  };
}

export default async function schedules({ main, page }) {
  page.title('Schedules');
  const list = h('ul', { class: 'list schedules' });
  const out = h('div', {});
  fill(main, h('div', { class: 'head' }, h('h1', {}, 'Schedules')), h('p', { class: 'muted' }, 'What starts by itself, and when. A node starts it.'), h('h2', { class: 'off' }, 'All schedules'), list, out);
  const rows = new Map();
  async function load() {
    try {
      const all = [];
      for (let after = ''; ;) {
        const found = await get('/schedules', { after, limit: 1000 }, { signal: page.signal });
        all.push(...found.schedules);
        if (!found.next) break;
        after = found.next;
      }
      const seen = new Set(all.map((s) => s.id));
      for (const id of rows.keys()) if (!seen.has(id)) rows.delete(id);
      for (const s of all) {
        if (!rows.has(s.id)) rows.set(s.id, row(s, load));
        rows.get(s.id).set(s);
      }
      arrange(list, all.map((s) => rows.get(s.id).element));
      fill(out, rows.size === 0 && empty('There are no schedules yet.', h('p', {}, 'To start a plan each night:'), command("sluice schedule create nightly --cron '30 2 * * *' --plan nightly.yaml")));
    } catch (e) {
      if (e.name !== 'AbortError' && e.code !== 'unreachable') fill(out, errorBox(e, load));
      if (rows.size === 0 && e.code === 'unreachable') throw e;
    }
  }
  page.every(2000, load);
  await load();
}

function row(s, load) {
  const state = badge(...stateOf(s)), when = h('span', { class: 'num' }), more = h('span', { class: 'muted' }), last = h('span', { class: 'past' });
  const change = buttons(() => s, load);
  return {
    element: h('li', { class: 'schedule' }, h('span', {}, state),
      h('span', { class: 'who' }, h('a', { class: 'name', href: href('schedules', s.name), 'data-row': '' }, s.name), more), when, last, h('span', { class: 'buttons' }, change.elements)),
    set(now) {
      s = now;
      state.set(...stateOf(s));
      put(more, [timetable(s), `starts ${starts(s)}`].join(' · '));
      put(when, s.paused ? s.paused.why || 'paused' : s.next ? until(s.next) : '');
      when.title = s.next ? zoned(s).format(new Date(s.next)) : '';
      const shown = JSON.stringify(occurrences(s));
      if (last.dataset.shown !== shown) {
        last.dataset.shown = shown;
        fill(last, strip(s));
      }
      change.set(s);
    },
  };
}

export async function schedule({ main, params, page }) {
  const path = `/schedules/${encodeURIComponent(params.schedule)}`;
  let s = await get(path, null, { signal: page.signal });
  page.title(s.name);
  const state = badge(...stateOf(s)), meta = h('p', { class: 'meta' }), why = h('p', { class: 'muted' });
  const next = h('table', {}), past = h('table', { class: 'occurrences' }), side = h('dl', { class: 'facts' }), file = h('div', {}), out = h('div', {});
  const change = buttons(() => s, load);
  fill(main, h('nav', { class: 'crumbs', 'aria-label': 'Where this is' }, h('a', { href: '/ui/schedules' }, 'Schedules')),
    h('div', { class: 'head' }, h('h1', {}, s.name), state, h('div', { class: 'buttons' }, change.elements)), meta, why, out,
    h('div', { class: 'columns' }, h('div', {}, h('section', {}, h('h2', {}, 'Occurrences'), past), h('section', {}, h('h2', {}, 'Next instants'), next)), h('div', {}, h('h2', {}, 'Schedule'), side, file)));
  async function load() {
    try {
      const [now, found] = await Promise.all([get(path, null, { signal: page.signal }), get(`${path}/instants`, { n: 8 }, { signal: page.signal })]);
      s = now;
      render(found.instants);
      fill(out);
    } catch (e) {
      if (e.name !== 'AbortError' && e.code !== 'unreachable') fill(out, errorBox(e, load));
    }
  }
  let drawn = '';
  function render(instants) {
    const at = zoned(s);
    state.set(...stateOf(s));
    change.set(s);
    put(meta, `${timetable(s)}, starts ${starts(s)}${s.next ? `, next ${until(s.next)}` : ''}`);
    put(why, s.paused ? `Paused ${instant(s.paused.at)}${s.paused.by ? ` by ${s.paused.by}` : ''}${s.paused.why ? `: ${s.paused.why}` : ''}` : '');
    why.hidden = !s.paused;
    const shown = JSON.stringify([s, instants]);
    if (shown === drawn) return; // what is selected stays
    drawn = shown;
    fill(next, h('tbody', {}, instants.map((o) => h('tr', {}, h('td', { class: 'num' }, at.format(new Date(o.at))), h('td', { class: 'muted' }, o.change ? `${o.change}: ${o.reason}` : '')))));
    const all = occurrences(s).reverse();
    fill(past, h('thead', {}, h('tr', {}, ['Instant', 'State', 'Took', 'Reason'].map((w) => h('th', { scope: 'col' }, w)))), h('tbody', {}, all.map((o) => {
      const to = target(o), b = badge(shape(o), o.state);
      return h('tr', {}, h('td', { class: 'num' }, to ? h('a', { href: to, 'data-row': '' }, at.format(new Date(o.at))) : at.format(new Date(o.at)), o.kind && h('span', { class: 'muted' }, ` by ${o.kind}`)),
        h('td', {}, b), h('td', { class: 'num' }, o.started ? between(o.started, o.ended) : ''), h('td', { class: 'muted' }, o.reason || ''));
    }), all.length === 0 && h('tr', {}, h('td', { colspan: '4', class: 'muted' }, 'There was none yet.'))));
    fill(side, facts([
      ['Id', copied(s.id, 'the id')], ['Zone', s.zone || 'UTC'], ['While one runs', s.overlap], ['Missed', s.missed], ['Left out', s.except?.join(', ')], ['Jitter', s.jitter],
      ['From', instant(s.from)], ['Until', instant(s.until)], ['Started', plural(s.tally.started, 'time')], ['Succeeded', s.tally.succeeded && String(s.tally.succeeded)], ['Failed', s.tally.failed && String(s.tally.failed)],
      ['Skipped', s.tally.skipped && String(s.tally.skipped)], ['Last success', instant(s.succeeded)], ['Backfill', s.backfills?.map((b) => `${at.format(new Date(b.from))} to ${at.format(new Date(b.to))}`).join(', ')],
      ['Changed', instant(s.modified)], ['Applied from', s.applied_from && h('code', { class: 'path' }, s.applied_from)],
    ]));
    fill(file, s.task && folded(JSON.stringify(s.task.params || {}, null, 2), { label: 'params' }), s.plan && folded(s.plan.file.text, { lines: 60, label: 'file' }));
  }
  page.every(2000, load);
  await load();
}
