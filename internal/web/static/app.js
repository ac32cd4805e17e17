// The frame of all pages: what a path shows, the navigation, the theme, the keys.
import { h, svg, fill, errorBox, setClock, stopClock } from './dom.js';
import { get, onReach } from './api.js';
import { go, onGo } from './address.js';
import * as session from './session.js';
import { ask } from './dialog.js';
import plans from './plans.js';
import plan from './plan.js';
import task from './task.js';
import tasks from './tasks.js';
import submit from './submit.js';
import queues from './queues.js';
import groups from './groups.js';
import activities from './activities.js';
import nodes from './nodes.js';
import schedules, { schedule } from './schedules.js';
import balance from './balance.js';
import login from './login.js';

// A page is a function of ({main, params, query, page}). It fills main, and tells page what is to end with it.
const routes = [
  [[], plans], [['plans'], plans], [['plans', ':plan'], plan], [['plans', ':plan', ':tab'], plan], [['tasks'], tasks], [['tasks', ':task'], task], [['submit'], submit],
  [['queues'], queues], [['groups'], groups], [['groups', ':type'], activities], [['nodes'], nodes], [['schedules'], schedules], [['schedules', ':schedule'], schedule], [['balance'], balance], [['login'], login],
];

// nav is the navigation, with the letter of each page: the document has it, so that it is there before this script.
const nav = [...document.querySelectorAll('#top nav a')].map((a) => [a.textContent, a.getAttribute('href'), a.dataset.key, a]);

const main = document.getElementById('main');
const notice = document.getElementById('notice');
let page = null;

function match(path) {
  const parts = path.replace(/^\/ui\/?/, '').split('/').filter((p) => p !== '').map((p) => { try { return decodeURIComponent(p); } catch { return p; } });
  for (const [route, show] of routes) {
    if (route.length !== parts.length) continue;
    const params = {};
    if (route.every((word, i) => (word[0] === ':' ? ((params[word.slice(1)] = parts[i]), true) : word === parts[i]))) return { show, params };
  }
  return { show: missing, params: {} };
}

function missing({ main, page }) {
  page.title('Not found');
  fill(main, lost('No such page', [h('code', {}, location.pathname), ' names nothing here.']));
}

// absent is what an address names that is not there.
const absent = () => ({ plans: 'No such plan', tasks: 'No such task', schedules: 'No such schedule', groups: 'No such activity type' }[location.pathname.split('/')[2]] || 'Not found');

// lost says that what an address names is not there, and where to go from here.
const lost = (title, why) => h('div', { class: 'lost' }, h('h1', {}, title), h('p', {}, why),
  h('form', { class: 'row', role: 'search', onsubmit: (e) => { e.preventDefault(); go(`/ui/?q=${encodeURIComponent(e.target.elements.q.value.trim())}`); } },
    h('input', { type: 'search', name: 'q', class: 'grow', placeholder: 'Part of the name of a plan', 'aria-label': 'Search plans by part of their name', spellcheck: 'false', autocomplete: 'off' }),
    h('button', { type: 'submit' }, 'Search')),
  h('p', { class: 'buttons' }, h('a', { class: 'button', href: '/ui/' }, 'All plans'), h('a', { class: 'button', href: '/ui/queues' }, 'Queues'), h('a', { class: 'button', href: '/ui/nodes' }, 'Nodes')));

// sentence makes one of what the API says in a few words.
const sentence = (text = '') => (text && `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`);

// A Page is what one showing of a page started, and ends with it.
class Page {
  constructor() {
    this.ends = [];
    this.keys = {};
    this.stopped = new AbortController();
    this.signal = this.stopped.signal;
    this.over = false;
    this.onLeave(() => this.stopped.abort());
  }
  onLeave(f) { this.ends.push(f); }
  leave() {
    this.over = true;
    for (const f of this.ends.splice(0)) f();
  }
  title(text) { document.title = text ? `${text} · Sluice` : 'Sluice'; }
  // every calls f each ms while somebody sees the page, one call after the other.
  every(ms, f) {
    let timer = 0;
    const next = () => { timer = setTimeout(run, ms); };
    const run = async () => {
      if (!document.hidden) { try { await f(); } catch (e) { if (e.name !== 'AbortError') console.debug(e); } }
      if (!this.over) next();
    };
    next();
    const seen = () => { if (!document.hidden) { clearTimeout(timer); run(); } };
    document.addEventListener('visibilitychange', seen);
    this.onLeave(() => { clearTimeout(timer); document.removeEventListener('visibilitychange', seen); });
  }
}

// current marks where this is among the pages.
function current() {
  for (const a of document.querySelectorAll('#top nav a')) {
    const path = new URL(a.href).pathname;
    const here = path === location.pathname || (path === '/ui/' && /^\/ui\/(plans(\/|$)|tasks\/)/.test(location.pathname)) || (path === '/ui/queues' && location.pathname === '/ui/tasks') || (['/ui/schedules', '/ui/groups'].includes(path) && location.pathname.startsWith(`${path}/`));
    if (here) a.hidden = false;
    if (here) {
      a.setAttribute('aria-current', 'page');
      a.parentElement.scrollLeft = a.offsetLeft - a.parentElement.offsetLeft - 60; // on a narrow screen it may be out of sight
    } else a.removeAttribute('aria-current');
  }
}

async function show({ scroll = 0, focus = true } = {}) {
  page?.leave();
  page = new Page();
  const mine = page;
  const { show: render, params } = match(location.pathname);
  current();
  const root = h('div', { class: 'page' });
  fill(main, root);
  try {
    await render({ main: root, params, query: new URLSearchParams(location.search), page: mine });
  } catch (e) {
    if (mine.over || e.name === 'AbortError') return;
    if (!(e.status || e.code)) console.error(e);
    mine.title(e.status === 404 ? 'Not found' : 'Error');
    if (e.status === 404) {
      fill(root, lost(absent(), `${sentence(e.detail)} It may have been deleted: plans that have ended are kept for a while only.`));
    } else fill(root, h('h1', {}, 'This page could not be shown'), errorBox(e, () => show()));
  }
  if (mine.over) return;
  if (focus && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  window.scrollTo(0, scroll);
}

onGo(show);
addEventListener('popstate', () => show({ scroll: history.state?.scroll || 0 }));
history.scrollRestoration = 'manual';
addEventListener('beforeunload', () => history.replaceState({ ...history.state, scroll: scrollY }, ''));

document.addEventListener('click', (e) => {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const a = e.target.closest?.('a[href]');
  if (!a || a.target || a.hasAttribute('download')) return;
  const url = new URL(a.href, location.href);
  if (url.origin !== location.origin || !url.pathname.startsWith('/ui/') || (url.pathname === location.pathname && url.hash)) return;
  e.preventDefault();
  go(url.pathname + url.search);
});

// Keys: what the page has, then what is everywhere. Who types into a field means the field.
let after = '';
document.addEventListener('keydown', (e) => {
  if (e.metaKey || e.ctrlKey || e.altKey || e.isComposing || e.defaultPrevented) return;
  const typing = e.target.closest?.('input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]');
  if (document.querySelector('dialog[open]')) return;
  if (typing) {
    if (e.key === 'Escape') {
      e.preventDefault(); // which would empty a search
      typing.blur();
    }
    return;
  }
  const key = after + e.key;
  after = '';
  if (e.key === 'g' && key === 'g') {
    after = 'g ';
    setTimeout(() => { after = ''; }, 1500);
    return;
  }
  const goTo = key.startsWith('g ') && nav.find(([, , letter]) => letter === key[2]);
  const f = page?.keys[key] || (goTo && (() => go(goTo[1]))) || everywhere[key];
  if (f && f(e) !== false) e.preventDefault();
});

const everywhere = {
  '?': help,
  t: theme,
  '/': () => { const s = main.querySelector('input[type=search]'); s?.focus(); s?.select(); return Boolean(s); },
  j: () => row(1), k: () => row(-1),
  u: () => { const a = main.querySelector('.crumbs a:last-of-type'); if (a) go(a.getAttribute('href')); },
};

// row moves the focus to the next thing of a list.
function row(step) {
  const all = [...main.querySelectorAll('[data-row]')].filter((e) => e.offsetParent !== null);
  if (all.length === 0) return false;
  const at = all.indexOf(document.activeElement);
  all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))].focus();
}

const keys = [
  ['Everywhere', [['?', 'These keys'], ['/', 'Search'], ['Esc', 'Leave a field, close a dialog'], ['u', 'Up: from a task to its plan, from a plan to all'], ['t', 'Light, dark, or as the system is']]],
  ['Go to', nav.map(([name, , letter]) => [`g ${letter}`, name])],
  ['In lists', [['j k', 'Next and previous row'], ['Enter', 'Open the row'], ['→ ←', 'Show the items of a foreach, hide them']]],
  ['A plan', [['1 … 7', 'Its tabs']]],
  ['Submit', [['Ctrl Enter', 'Submit'], ['Ctrl Shift Enter', 'Check']]],
  ['Its graph and time line', [['Enter', 'Choose a task, then open it'], ['← ↑ → ↓', 'From task to task; else move'], ['+ −', 'Enlarge, make smaller'], ['f', 'Show all'], ['c', 'Along the critical path'], ['o', 'Open a row of several']]],
];

function help() {
  const kbd = (key) => key.split(' ').map((k) => (k === '…' ? ' … ' : h('kbd', {}, k)));
  ask({
    title: 'Keys', cancel: null, ok: 'Close', wide: true,
    body: h('div', { class: 'keys' }, keys.map(([title, list]) => h('section', {}, h('h3', {}, title), h('dl', {}, list.map(([key, what]) => [h('dt', {}, kbd(key)), h('dd', {}, what)]))))),
  });
}

const themes = ['', 'light', 'dark'];
const themeWords = { '': 'System', light: 'Light', dark: 'Dark' };
const themeButton = h('button', { class: 'quiet', type: 'button', id: 'theme', onclick: () => theme() });

function theme(to) {
  const now = document.documentElement.dataset.theme || '';
  const next = typeof to === 'string' ? to : themes[(themes.indexOf(now) + 1) % themes.length];
  if (next) document.documentElement.dataset.theme = next;
  else delete document.documentElement.dataset.theme;
  try { localStorage.setItem('sluice-theme', next); } catch { /* it lasts as long as the page */ }
  fill(themeButton, svg('svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true' }, svg('circle', { cx: 8, cy: 8, r: 6.2, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.6 }),
    svg('path', { d: 'M8 1.8a6.2 6.2 0 0 1 0 12.4z', fill: 'currentColor' })), h('span', {}, themeWords[next]));
  themeButton.setAttribute('aria-label', `Theme: ${themeWords[next]}. Change it`);
  themeButton.title = 'Theme (t)';
}

function frame() {
  fill(document.querySelector('#top .tools'),
    session.user() && h('span', { class: 'muted user wide', title: 'Logged in' }, session.user()),
    session.user() && h('button', { class: 'quiet', type: 'button', onclick: () => session.logout(), title: `Logged in as ${session.user()}` }, 'Log out'),
    themeButton, h('button', { class: 'quiet', type: 'button', onclick: help, 'aria-label': 'Keys', title: 'Keys (?)' }, '?'));
  theme(document.documentElement.dataset.theme || '');
}

onReach((there) => {
  stopClock(!there);
  fill(notice, there ? null : h('p', {}, 'The server does not answer. What is shown may be old; it goes on when the server is back.'));
  notice.classList.toggle('shown', !there);
  if (!there) setTimeout(probe, 2000);
});
async function probe() {
  try { await get('/now'); } catch { setTimeout(probe, 3000); }
}

frame();
await session.begin();
if (session.user()) frame();
// The page of the balance is offered where there is something to balance by, and that of groups where there are some. Each can be reached by
// its address to begin with one.
if (location.pathname !== '/ui/login') {
  for (const [name, path, there] of [['Balance', '/balance', (found) => found.document], ['Groups', '/groups', (found) => found.groups.length > 0]]) {
    get(path).then((found) => {
      if (!there(found)) return;
      nav.find(([title]) => title === name)[3].hidden = false;
      current();
    }, () => { /* it is not offered */ });
  }
}
show({ focus: false, scroll: history.state?.scroll || 0 });
if (location.pathname !== '/ui/login') get('/now').then((n) => setClock(n.now), () => { /* the page says so itself */ });
