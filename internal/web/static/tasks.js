// Tasks of all plans, newest first: those of one queue or one state. Pages link here from numbers.
import { h, fill, put, headings, href, labelled, number, plural, instant, ago, empty, errorBox } from './dom.js';
import { get } from './api.js';
import { remember } from './address.js';
import { badge, TASK, FAILED, shown, how, took } from './states.js';
import { word } from './words.js';

const PAGE = 100;

// SETS are choices of several states.
const SETS = { active: ['claimed', 'running'], failing: FAILED };

// titles returns a function that names plans by their ids: it asks for each plan once.
export function titles(signal) {
  const known = new Map();
  return (id) => {
    if (!known.has(id)) known.set(id, get(`/plans/${id}`, null, { signal }).then((p) => `${p.name} #${p.run}`, () => { known.delete(id); return ''; }));
    return known.get(id);
  };
}

export default async function tasks({ main, query, page }) {
  page.title('Tasks');
  let queue = query.get('queue') || '', state = query.get('state') || '', last = '', generation = 0;
  const titleOf = titles(page.signal);
  const states = h('select', { 'aria-label': 'State', onchange: () => { state = states.value; remember({ state }); load(); } },
    h('option', { value: '' }, 'Any state'), h('option', { value: 'active' }, 'starting or running'), h('option', { value: 'failing' }, 'failed in any way'), TASK.map((s) => h('option', { value: s }, word(s))));
  states.value = state;
  const queues = h('select', { 'aria-label': 'Queue', onchange: () => { queue = queues.value; remember({ queue }); load(); } }, h('option', { value: '' }, 'Any queue'), queue && h('option', { value: queue }, queue));
  queues.value = queue;
  get('/queues', { counts: 'false' }, { signal: page.signal }).then((found) => {
    queues.append(...found.queues.filter((q) => q.name !== queue).map((q) => h('option', { value: q.name }, q.name)));
  }, () => { /* the filter has the one that was asked for */ });
  const list = h('ul', { class: 'list tasks' }), foot = h('div', { class: 'foot' }), count = h('span', { class: 'muted num', role: 'status' });
  fill(main, h('nav', { class: 'crumbs', 'aria-label': 'Where this is' }, h('a', { href: '/ui/queues' }, 'Queues')),
    h('div', { class: 'head' }, h('h1', {}, 'Tasks')), h('div', { class: 'toolbar' }, queues, states, count),
    h('h2', { class: 'off' }, 'Tasks of all plans, newest first'), headings('tasks-head', ['State', 'Task', 'Queue', 'Node', 'Took', 'Began']), list, foot);

  async function load() {
    last = '';
    generation++;
    fill(list);
    await more();
  }
  async function more() {
    const mine = generation;
    try {
      const { tasks: found, next } = await get('/tasks', { queue, state: (SETS[state] || [state]).join(','), newest: true, after: last, with: 'item_label', limit: PAGE }, { signal: page.signal });
      if (mine !== generation) return;
      list.append(...found.map((t) => row(t, titleOf)));
      last = found.at(-1)?.id || '';
      put(count, list.children.length ? next ? `${number(list.children.length)} and more` : plural(list.children.length, 'task') : '');
      fill(foot, next ? h('button', { type: 'button', onclick: more }, 'Show more') : !list.children.length && empty('No task is like that.'));
    } catch (e) {
      if (e.name !== 'AbortError' && mine === generation) fill(foot, errorBox(e, more));
    }
  }
  await load();
}

function row(t, titleOf) {
  const of = h('span', { class: 'muted' }, t.plan ? '' : 'no plan');
  if (t.plan) titleOf(t.plan).then((title) => fill(of, title && h('a', { href: href('plans', t.plan) }, title)));
  return h('li', {}, badge(...shown(t)), h('span', { class: 'who' }, h('a', { class: 'name', href: href('tasks', t.id), 'data-row': '' }, labelled(t)), of, h('span', { class: 'muted' }, how(t))),
    h('span', { class: 'muted' }, t.queue), h('span', { class: 'muted' }, t.node || ''), h('span', { class: 'num' }, took(t)),
    h('time', { class: 'muted', datetime: t.started || t.created, title: instant(t.started || t.created) }, ago(t.started || t.created)));
}
