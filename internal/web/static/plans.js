// The plans: all of them, newest first, as they go on.
import { h, fill, put, arrange, headings, href, number, plural, instant, empty, errorBox, command, debounce, ago, folded, pretty } from './dom.js';
import { get } from './api.js';
import { listen } from './events.js';
import { remember } from './address.js';
import { word } from './words.js';
import { inbox } from './approve.js';
import { badge, left, progress, PLAN, summary, ended, icon, began, tookPlan } from './states.js';

const PAGE = 50;
const STRIP = 8; // runs of a name that its latest one shows

export default async function plans({ main, query, page }) {
  page.title('Plans');
  let state = PLAN.includes(query.get('state')) ? query.get('state') : '';
  let text = query.get('q') || '';
  let next = null, loading = false, generation = 0;
  const rows = new Map(); // by id
  const dirty = new Set(), others = new Set(); // plans of which something changed; those that are not in this list

  const search = h('input', { type: 'search', value: text, placeholder: 'Search by name', 'aria-label': 'Search plans by part of their name', spellcheck: 'false', autocomplete: 'off',
    oninput: debounce(() => { text = search.value.trim(); remember({ q: text }); reload(); }, 250) });
  const chips = h('div', { class: 'chips', role: 'group', 'aria-label': 'Only plans that are' },
    ['', ...PLAN].map((s) => h('button', { type: 'button', 'data-state': s, onclick: () => { state = s; remember({ state }); mark(); reload(); } },
      s && icon(s), s ? s[0].toUpperCase() + s.slice(1) : 'All')));
  const list = h('ul', { class: 'list plans', 'aria-label': 'Plans' });
  const fresh = h('button', { class: 'pill', type: 'button', hidden: true, onclick: () => { fresh.hidden = true; reload(); scrollTo(0, 0); } }, 'New plans');
  const foot = h('div', { class: 'foot' });
  const heads = headings('plans-head', ['State', 'Plan', 'Tasks', ['Took', 'Started']]);
  fill(main,
    h('div', { class: 'head' }, h('h1', {}, 'Plans'), h('a', { class: 'button primary needs-submit', href: '/ui/submit' }, 'Submit a plan')),
    inbox(page), h('div', { class: 'toolbar' }, search, chips), fresh, h('h2', { class: 'off' }, 'Newest first'), heads, list, foot);

  function mark() {
    for (const b of chips.children) b.setAttribute('aria-pressed', String(b.dataset.state === state));
  }
  mark();

  const ask = (more, limit = PAGE) => (text
    ? get('/search/plans', { text, state, before: more, limit }, { signal: page.signal })
    : get('/plans', { state, before: more, limit }, { signal: page.signal }));

  async function reload(why) {
    const mine = ++generation;
    if (why !== 'again') others.clear();
    try {
      const found = await ask();
      if (mine !== generation) return;
      const seen = new Set();
      const nodes = found.plans.map((p) => { seen.add(p.id); return rowOf(p); });
      for (const id of rows.keys()) if (!seen.has(id)) rows.delete(id);
      arrange(list, nodes);
      next = found.next;
      footer();
    } catch (e) {
      if (e.name === 'AbortError' || mine !== generation) return;
      fill(foot, errorBox(e, reload));
    }
  }

  function rowOf(p) {
    let r = rows.get(p.id);
    if (r) r.set(p);
    else rows.set(p.id, r = row(p));
    return r.element;
  }

  async function more() {
    if (loading || !next) return;
    loading = true;
    const mine = generation;
    try {
      const found = await ask(next);
      if (mine === generation) {
        list.append(...found.plans.filter((p) => !rows.has(p.id)).map(rowOf));
        next = found.next;
      }
    } catch (e) {
      if (e.name !== 'AbortError') fill(foot, errorBox(e, () => { footer(); more(); }));
      loading = false;
      return;
    }
    loading = false;
    footer();
  }

  function footer() {
    heads.hidden = rows.size === 0;
    strips();
    if (rows.size === 0 && !next) {
      fill(foot, text || state
        ? empty('No plan is like that.', h('p', {}, h('button', { type: 'button', onclick: () => { state = text = search.value = ''; remember({ q: '', state: '' }); mark(); reload(); } }, 'Show all plans')))
        : empty('There are no plans yet.', h('p', {}, 'Paste a plan file on ', h('a', { href: '/ui/submit' }, 'Submit'), ', or on the command line:'), command('sluice plan submit plan.yaml')));
      return;
    }
    fill(foot, next ? h('button', { type: 'button', onclick: more }, 'Show more') : rows.size > 8 && h('p', { class: 'muted' }, plural(rows.size, 'plan')));
    if (next && rows.size < 20) more(); // a search that looked at many plans and found few
  }

  // strips shows on the latest run of each name how the ones before it ended, of those that are listed.
  function strips() {
    const byName = new Map();
    for (const r of rows.values()) byName.set(r.plan.name, [...(byName.get(r.plan.name) || []), r.plan]);
    for (const r of rows.values()) {
      const all = byName.get(r.plan.name).sort((a, b) => b.run - a.run);
      r.strip(all.length > 1 && all[0].id === r.plan.id ? all.slice(0, STRIP).reverse() : []);
    }
  }

  const watcher = new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) more(); }, { rootMargin: '400px' });
  watcher.observe(foot);
  page.onLeave(() => watcher.disconnect());

  // An event says that something changed; what is shown is asked for once a second at most, few plans by themselves and many as a list.
  let timer = 0;
  page.onLeave(() => clearTimeout(timer));
  async function refresh() {
    timer = 0;
    const ids = [...dirty];
    dirty.clear();
    try {
      if (ids.some((id) => !rows.has(id)) && !text) {
        if (scrollY < 100) await reload('again');
        else fresh.hidden = false;
        for (const id of ids) if (!rows.has(id)) others.add(id);
        return;
      }
      const known = ids.filter((id) => rows.has(id));
      const now = known.length > 5 ? (await ask('', Math.min(500, rows.size))).plans : await Promise.all(known.map((id) => get(`/plans/${id}`, null, { signal: page.signal })));
      for (const p of now) rows.get(p.id)?.set(p);
      strips();
    } catch { /* the notice says it, and the next event asks again */ }
  }
  page.onLeave(listen('/events/plans', {
    event: (c) => {
      if (!c.plan || (others.has(c.plan) && c.type === 'task')) return;
      dirty.add(c.plan);
      timer ||= setTimeout(refresh, rows.has(c.plan) ? 1000 : 300);
    },
    resync: reload,
  }));
  page.every(1000, () => { for (const r of rows.values()) r.tick(); });
  page.every(15000, async () => { // that a plan has stalled is no event
    for (const r of [...rows.values()].filter((x) => !ended(x.plan)).slice(0, 20)) r.set(await get(`/plans/${r.plan.id}`, null, { signal: page.signal }));
  });
  await reload();
}

function row(first) {
  const state = badge('running');
  const name = h('span', { class: 'name' });
  const note = h('span', { class: 'note' });
  const bar = progress(first);
  const count = h('span', { class: 'count' });
  const broken = h('span', { class: 'broken' });
  const strip = h('span', { class: 'strip', role: 'img', hidden: true });
  const took = h('span', { class: 'took' });
  const at = h('time', { class: 'at' });
  const link = h('a', { 'data-row': '', href: href('plans', first.id) }, state,
    h('span', { class: 'who' }, name, strip, note), h('span', { class: 'how' }, bar, h('span', { class: 'numbers' }, count, broken)), h('span', { class: 'times' }, took, at));
  const about = h('div', { class: 'about', hidden: true });
  const more = h('button', { type: 'button', class: 'quiet more', 'aria-expanded': 'false', title: 'Params and submitter', onclick: () => {
    about.hidden = !about.hidden;
    more.setAttribute('aria-expanded', String(!about.hidden));
    const p = r.plan;
    if (!about.hidden) {
      fill(about, h('p', { class: 'muted' }, 'Submitted ', instant(p.created), p.submitted_by && [' by ', h('strong', {}, p.submitted_by)], p.source && [' from ', h('code', { class: 'path' }, p.source)]),
        p.params && Object.keys(p.params).length ? folded(pretty(p.params), { lines: 12, label: 'params' }) : h('p', { class: 'muted' }, 'It has no params.'));
    }
  } }, '⋯');
  let shownStrip = '';
  const r = {
    element: h('li', {}, link, more, about), plan: first,
    strip(all) {
      const now = all.map((p) => `#${p.run} ${p.stalled ? 'stalled' : p.state}`).join(', ');
      if (now === shownStrip) return;
      shownStrip = now;
      strip.hidden = !all.length;
      strip.setAttribute('aria-label', `Runs: ${now}`);
      strip.title = now;
      fill(strip, all.map((p) => icon(p.stalled ? 'stalled' : p.state)));
    },
    set(p) {
      r.plan = p;
      const shown = p.stalled ? 'stalled' : p.state;
      state.set(shown);
      put(name, `${p.name} #${p.run}`);
      more.setAttribute('aria-label', `Params and submitter of ${p.name} #${p.run}`);
      put(note, p.stalled ? 'no node runs it' : p.stopped === 'timeout' || p.closing === 'timeout' && ended(p) ? 'timed out' : p.closing === 'timeout' ? 'is being stopped' : p.closing === 'cancelled' && !ended(p) ? 'is being cancelled' : '');
      bar.set(p);
      bar.title = summary(p.counts);
      put(count, `${number(p.sums.done)} of ${number(p.sums.tasks)}`);
      const failed = p.sums.broken, allowed = p.counts.allowed;
      const how = p.counts.failed || p.counts.orphaned ? 'failed' : 'terminated'; // of a plan that a person cancelled nothing need have failed
      put(broken, failed ? `${number(failed)} ${word(how)}${allowed ? `, ${number(allowed)} allowed` : ''}` : allowed ? `${number(allowed)} allowed` : p.counts.running ? `${number(p.counts.running)} running` : '');
      broken.className = `broken s-${failed ? how : allowed ? 'allowed' : 'running'}`;
      r.tick();
    },
    tick() {
      const p = r.plan;
      put(took, tookPlan(p));
      took.title = left(p).replace(/^, /, '');
      put(at, ago(began(p)));
      at.dateTime = began(p);
      at.title = `submitted ${instant(p.created)}${p.retried ? `, retried ${instant(p.retried)}` : ''}`;
    },
  };
  r.set(first);
  return r;
}
