// The tasks of a plan as a table of which only the rows in sight exist, so that it holds 100,000. The server gives them by cursor, in the plan's order.
// A foreach is one row with one state, and its items come below it where it is open; who scrolls ahead sees empty rows until they are there. Where tasks
// are looked for there are no folds.
import { h, fill, put, href, number, plural, clock, instant, empty, errorBox, debounce, throttle } from './dom.js';
import { go, remember } from './address.js';
import { word } from './words.js';
import { badge, TASK, FAILED, rows as rowsOf, shown, finished, active, how, took } from './states.js';

const ROW = 34; // px, as in style.css
const FIRST = 200, MORE = 1000, MOST = 5000; // rows asked for at a time: at first, as one scrolls on, and to get far

export default async function taskTable({ element, id, get, page, query, onEvent, plan }) {
  const wanted = query.get('state');
  let state = ['failing', 'allowed'].includes(wanted) ? wanted : TASK.find((s) => s === wanted || word(s) === wanted) || '';
  let text = query.get('q') || '', queue = query.get('queue') || '', kind = query.get('failure') || '';
  let rows = [], index = new Map(), next = '', loading = false, generation = 0, at = -1, problem = null;
  const open = new Set(); // foreach tasks, whose items are shown
  let far = new Map(), going = false; // how far foreach tasks are, by their ids; whether one is in sight that has not ended
  let sized = 0, renewing = false; // how many tasks the plan had when rows were asked for; whether they are, once more

  const search = h('input', { type: 'search', value: text, placeholder: 'Search by name', 'aria-label': 'Search tasks by part of their name', spellcheck: 'false', autocomplete: 'off',
    oninput: debounce(() => { text = search.value.trim(); remember({ q: text }); reload(); }, 250) });
  const states = h('select', { 'aria-label': 'State', onchange: () => { state = states.value; remember({ state }); reload(); } },
    h('option', { value: '' }, 'Any state'), h('option', { value: 'failing' }, 'failed in any way'), TASK.map((s) => h('option', { value: s }, word(s))), h('option', { value: 'allowed' }, 'failed, and allowed'));
  states.value = state;
  const queues = h('select', { 'aria-label': 'Queue', onchange: () => { queue = queues.value; remember({ queue }); reload(); } }, h('option', { value: '' }, 'Any queue'));
  get('/queues', { counts: 'false' }).then((found) => {
    queues.append(...found.queues.map((q) => h('option', { value: q.name }, q.name)));
    queues.value = queue;
  }, () => { /* the filter is left out */ });
  const only = h('button', { class: 'pill', type: 'button', onclick: () => { kind = ''; remember({ failure: '' }); reload(); } }, 'One kind of failure ✕');
  const count = h('span', { class: 'muted num', role: 'status' });
  const head = h('div', { class: 'thead', role: 'row' }, ['State', 'Task', 'Queue', 'Node', 'Began', 'Took'].map((w) => h('span', { role: 'columnheader' }, w)));
  const space = h('div', { class: 'space', role: 'rowgroup' });
  const grid = h('div', { class: 'grid', role: 'grid', tabindex: '0', 'aria-label': 'Tasks', id: 'tasks' }, head, space);
  const foot = h('div', { class: 'foot' });
  fill(element, h('div', { class: 'toolbar' }, search, states, queues, only, count), grid, foot);

  const filtered = () => text || state || queue || kind;
  // How many rows there are going to be; where that is not known, those that are there and some more.
  function size() {
    if (!next) return rows.length;
    const c = plan().counts;
    if (!filtered()) return Math.max(rows.length + 1, rowsOf(plan()) - rows.reduce((n, t) => n + (open.has(t.id) ? 0 : t.items), 0));
    if (state && !text && !queue && !kind) return Math.max(rows.length + 1, state === 'failing' ? plan().sums.broken + c.allowed : c[state] || 0);
    return rows.length + 20;
  }

  async function reload() {
    generation++;
    rows = [];
    index = new Map();
    next = 'first';
    at = -1;
    problem = null;
    loading = false;
    sized = rowsOf(plan());
    only.hidden = !kind;
    await load(FIRST);
    grid.scrollTop = 0;
  }

  async function load(limit) {
    if (loading || !next) return;
    loading = true;
    const mine = generation;
    try {
      const found = await ask(next === 'first' ? '' : next, limit);
      if (mine !== generation) return;
      for (const t of found.tasks) {
        if (!index.has(t.id)) { index.set(t.id, rows.length); rows.push(slim(t)); }
      }
      next = found.next || '';
      loading = false;
    } catch (e) {
      if (e.name === 'AbortError' || mine !== generation) return;
      loading = false;
      problem = e;
    }
    render();
  }

  const ask = (after, limit) => get(`/plans/${id}/search`, { ...(filtered() ? {} : { folded: true, open: [...open].join(',') }), text, queue, failure: kind, state: state === 'failing' ? FAILED.join(',') : state, order: 'plan', after, limit });

  // again reads what is there anew, since what was added, as items that were made, has its place among it. What is in sight stays where it is.
  const again = throttle(reread, 1500);
  async function reread() {
    if (page.over || renewing) return;
    renewing = true;
    const mine = generation, now = rowsOf(plan());
    let fresh = [], after = '';
    try {
      do {
        const found = await ask(after, Math.min(MOST, Math.max(FIRST, rows.length - fresh.length + MORE)));
        fresh = fresh.concat(found.tasks.map(slim));
        after = found.next || '';
      } while (after && fresh.length < rows.length);
    } catch { // it is asked for again, as the plan is still larger
      return;
    } finally { renewing = false; }
    if (mine !== generation) return;
    generation++; // what else is on the way is of the rows before
    const chosen = rows[at]?.id, top = Math.floor(grid.scrollTop / ROW), first = rows[top]?.id;
    rows = fresh;
    index = new Map(rows.map((t, i) => [t.id, i]));
    next = after;
    loading = false;
    sized = now;
    at = index.get(chosen) ?? -1;
    render();
    if (top > 0 && index.has(first)) grid.scrollTop += (index.get(first) - top) * ROW;
  }

  // turn opens a foreach, or closes it.
  async function turn(t) {
    if (!open.delete(t.id)) open.add(t.id);
    while (renewing && !page.over) await new Promise((next) => { setTimeout(next, 50); });
    await reread();
  }

  // look asks how far foreach tasks are that have not ended: that follows from their items, of which no row may be there.
  const look = throttle(async () => {
    if (page.over || filtered()) return;
    try {
      const found = await get(`/plans/${id}/foreach-tasks`);
      far = new Map(found.foreach_tasks.map((f) => [f.id, f]));
      render();
    } catch { /* the next event asks again */ }
  }, 1500);
  const grown = () => { if (!state && !kind && rowsOf(plan()) !== sized) again(); };

  // counted says how many tasks are listed. A foreach task that has items is a row above them, and counted nowhere. A failure that the plan
  // allows is not one of those in a state.
  function counted(all) {
    const c = plan().counts;
    if (!filtered()) all = rowsOf(plan());
    const heads = next || !filtered() ? (filtered() ? 0 : c.gathering + c.gathered) : rows.reduce((n, t) => n + (t.heads ? 1 : 0), 0);
    const may = next || !state || state === 'allowed' ? 0 : rows.reduce((n, t) => n + (t.allowed && !t.heads ? 1 : 0), 0);
    return [plural(all - heads - may, 'task'), may && `${number(may)} allowed`, heads && `and ${plural(heads, 'foreach task')}`].filter(Boolean).join(', ');
  }

  const slots = [];
  function render() {
    const all = size();
    put(count, next && filtered() && (text || queue || kind) ? `${number(rows.length)} and more` : counted(all));
    grid.setAttribute('aria-rowcount', String(all + 1));
    space.style.setProperty('height', `${all * ROW}px`);
    grid.style.setProperty('--rows', all);
    grid.hidden = all === 0;
    fill(foot, problem ? errorBox(problem, () => { problem = null; render(); load(MORE); }) : all === 0 && (filtered()
      ? empty('No task is like that.', h('p', {}, h('button', { type: 'button', onclick: () => {
        text = state = queue = kind = search.value = states.value = queues.value = '';
        remember({ q: '', state: '', queue: '', failure: '' });
        reload();
      } }, 'Show all tasks'))) : empty('The plan has no tasks yet.')));
    if (all === 0) return;
    const from = Math.max(0, Math.floor(grid.scrollTop / ROW) - 8), to = Math.min(all, Math.ceil((grid.scrollTop + grid.clientHeight) / ROW) + 8);
    while (slots.length < to - from) {
      const s = slot();
      slots.push(s);
      space.append(s.element);
    }
    slots.forEach((s, i) => {
      if (from + i < to) s.set(from + i, rows[from + i], from + i === at);
      else s.element.hidden = true;
    });
    grid.setAttribute('aria-activedescendant', at >= from && at < to ? `row-${at}` : '');
    if (next && !problem && to + 100 > rows.length) load(to - rows.length > MORE ? MOST : MORE);
    if (rows.slice(from, to).some((t) => t.stale)) renew();
    going = !filtered() && rows.slice(from, to).some((t) => t.items && !finished(t.state));
    if (going && rows.slice(from, to).some((t) => t.items && !finished(t.state) && !far.has(t.id))) look();
  }

  // An event tells less than a row shows, as when a task began; what is in sight is asked for then.
  const renew = throttle(async () => {
    const mine = generation, from = Math.max(0, Math.floor(grid.scrollTop / ROW) - 8);
    const old = rows.slice(from, from + 100).filter((t) => t.stale);
    if (!old.length || page.over) return;
    for (const t of old) t.stale = false;
    try {
      const found = await get('/tasks', { ids: old.map((t) => t.id).join(','), with: 'item_label', limit: 100 });
      if (mine !== generation) return;
      for (const t of found.tasks) rows[index.get(t.id)] = slim(t);
      render();
    } catch { /* the next event, or the next look, asks again */ }
  }, 700);

  function slot() {
    const state = badge('held');
    const cells = ['name', 'queue', 'node', 'at', 'took'].map((c) => h('span', { class: c, role: 'gridcell' }));
    const link = h('a', { tabindex: '-1' }), of = h('span', { class: 'of' }), extra = h('span', { class: 'extra' });
    const fold = h('button', { class: 'fold', type: 'button', tabindex: '-1' });
    cells[0].append(fold, link, of, extra);
    const element = h('div', { class: 'trow', role: 'row' }, h('span', { role: 'gridcell', class: 'state' }, state), cells);
    return {
      element,
      set(i, t, chosen) {
        element.hidden = false;
        element.id = `row-${i}`;
        element.setAttribute('aria-rowindex', String(i + 2));
        element.style.setProperty('transform', `translateY(${i * ROW}px)`);
        element.classList.toggle('chosen', chosen);
        element.classList.toggle('item', Boolean(t?.of));
        element.setAttribute('aria-selected', String(chosen));
        element.classList.toggle('ghost', !t);
        fold.hidden = !t?.foreach || Boolean(filtered());
        if (!t) { put(link, ''); put(of, ''); put(extra, ''); for (const c of cells.slice(1)) put(c, ''); return; }
        const now = t.items && !finished(t.state) && far.get(t.id);
        if (now) state.set(now.state);
        else state.set(...shown(t));
        if (!fold.hidden) {
          const unfolded = open.has(t.id);
          fold.setAttribute('aria-expanded', String(unfolded));
          fold.setAttribute('aria-label', `${unfolded ? 'Hide' : 'Show'} the items of ${t.name}`);
        }
        put(link, t.name || t.id);
        put(of, t.label && ` (${t.label})`);
        link.href = href('tasks', t.id);
        const note = now ? `${number(now.done)} of ${plural(now.items, 'item')} done` : t.note;
        put(extra, note && ` ${note}`);
        put(cells[1], t.queue);
        put(cells[2], t.node);
        put(cells[3], clock(t.started));
        cells[3].title = instant(t.started);
        put(cells[4], took(t));
        cells[4].title = t.attempt > 1 && took(t) ? `attempt ${t.attempt}, without those before and the pauses between them` : '';
      },
    };
  }

  let asked = false;
  const soon = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; if (!page.over) render(); });
  };
  grid.addEventListener('scroll', soon, { passive: true });
  const resized = new ResizeObserver(soon);
  resized.observe(grid);
  page.onLeave(() => resized.disconnect());
  space.addEventListener('click', (e) => {
    const r = e.target.closest('.trow');
    if (r && e.target.closest('.fold')) {
      turn(rows[Number(r.id.slice(4))]);
      return;
    }
    if (!r || e.target.closest('a') || e.metaKey || e.ctrlKey || getSelection().toString()) return;
    const t = rows[Number(r.id.slice(4))];
    if (t) go(href('tasks', t.id));
  });

  function choose(to) {
    at = Math.max(0, Math.min(size() - 1, to));
    const top = at * ROW, bottom = top + ROW, view = grid.clientHeight - head.offsetHeight;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (bottom > grid.scrollTop + view) grid.scrollTop = bottom - view;
    grid.focus({ preventScroll: true });
    grid.scrollIntoView({ block: 'nearest' });
    render();
    return true;
  }
  const perView = () => Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
  Object.assign(page.keys, { j: () => choose(at + 1), k: () => choose(at - 1) });
  grid.addEventListener('keydown', (e) => {
    if (e.metaKey || e.ctrlKey || e.altKey) return;
    const f = {
      ArrowDown: () => choose(at + 1), ArrowUp: () => choose(at - 1), PageDown: () => choose(at + perView()), PageUp: () => choose(at - perView()),
      ArrowRight: () => rows[at]?.foreach && !filtered() && !open.has(rows[at].id) && (turn(rows[at]), true), ArrowLeft: () => open.has(rows[at]?.id) && (turn(rows[at]), true),
      Home: () => choose(0), End: () => choose(size() - 1), Enter: () => rows[at] && (go(href('tasks', rows[at].id)), true),
    }[e.key];
    if (f && f()) e.preventDefault();
  });

  page.onLeave(onEvent((c) => {
    if (c.counts) return recheck();
    if (c.type !== 'task') return;
    if (far.has(c.of)) look();
    const i = index.get(c.task);
    if (i !== undefined) {
      const t = rows[i], same = t.attempt === (c.attempt || 0), ran = t.state === 'running';
      if (c.state === 'running' && !(ran && same)) { t.started = c.at; t.ended = ''; }
      else if (c.state !== 'running' && ran && same) t.ended = c.at; // also if it is tried again
      else if (!same) t.started = t.ended = ''; // of an attempt that nobody saw begin
      Object.assign(t, { state: c.state, allowed: Boolean(c.allowed), node: c.node || '', attempt: c.attempt || 0, note: note(c), stale: true });
    }
    soon();
  }));
  page.every(1000, () => { // what runs takes longer
    grown();
    soon();
  });
  page.every(2000, () => { if (going) look(); }); // the server reads the states of tasks at a rate of its own, and not for each event
  // recheck asks for those rows in sight that may have changed.
  function recheck() {
    for (const t of rows) if (!finished(t.state)) t.stale = true;
    grown();
    soon();
  }
  await reload();
  return {
    reload,
    catchUp() { // something may have been missed
      for (const t of rows) t.stale = true;
      grown();
      soon();
    },
  };
}

const note = (t) => {
  const detail = t.state !== 'succeeded' && !active(t.state) && t.detail?.trim().split('\n')[0].slice(0, 300);
  return [t.items && (!finished(t.state) || t.state === 'succeeded') && plural(t.items, 'item'), t.attempt > 1 && `attempt ${t.attempt}`,
    detail && t.exit ? '' : how(t), detail].filter(Boolean).join(' · '); // the detail of a command says how it ended
};

// slim keeps what is shown: 100,000 of them fit.
const slim = (t) => ({
  id: t.id, of: t.of || '', foreach: Boolean(t.foreach), items: t.items || 0, name: t.name, label: t.item_label || '', state: t.state, queue: t.queue, node: t.node || '', attempt: t.attempt || 0, heads: Boolean(t.expanded && t.items), allowed: Boolean(t.allowed), started: t.started || '', ended: t.ended || '', note: note(t),
});
