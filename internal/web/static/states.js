// States of tasks, plans, queues and nodes, as they are shown everywhere: a colour, a shape and a word, of which the last two tell without the first.
import { h, svg, number, fill, href, between, duration } from './dom.js';
import { word } from './words.js';

// Tasks' states in the order of their lives.
export const TASK = ['succeeded', 'failed', 'terminated', 'orphaned', 'running', 'claimed', 'queued', 'held', 'skipped', 'cancelled'];
export const PLAN = ['running', 'failed', 'succeeded', 'cancelled', 'submitting', 'abandoned'];
export const FAILED = ['failed', 'terminated', 'orphaned'];
const FINAL = new Set(['succeeded', 'failed', 'terminated', 'orphaned', 'skipped', 'cancelled']);
export const finished = (state) => FINAL.has(state);
export const active = (state) => state === 'running' || state === 'claimed';
export const ended = (plan) => ['succeeded', 'failed', 'cancelled', 'abandoned'].includes(plan.state);

const line = { fill: 'none', stroke: 'currentColor', 'stroke-width': '2', 'stroke-linecap': 'round', 'stroke-linejoin': 'round' };
const solid = { fill: 'currentColor', stroke: 'none' };
const ring = { cx: 8, cy: 8, r: 5.5 };
const shapes = {
  check: () => [svg('circle', { cx: 8, cy: 8, r: 7, ...solid }), svg('path', { d: 'M4.6 8.3l2.3 2.3 4.5-4.9', ...line, class: 'on' })],
  cross: () => [svg('circle', { cx: 8, cy: 8, r: 7, ...solid }), svg('path', { d: 'M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2', ...line, class: 'on' })],
  play: () => [svg('circle', { ...ring, ...line }), svg('path', { d: 'M6.5 5.2v5.6L11 8z', ...solid })],
  ring: () => [svg('circle', { ...ring, ...line })],
  dot: () => [svg('circle', { ...ring, ...line }), svg('circle', { cx: 8, cy: 8, r: 2.2, ...solid })],
  dashed: () => [svg('circle', { ...ring, ...line, 'stroke-dasharray': '2.2 3.56', 'stroke-linecap': 'butt' })],
  square: () => [svg('rect', { x: 2, y: 2, width: 12, height: 12, rx: 2.5, ...solid }), svg('rect', { x: 5.6, y: 5.6, width: 4.8, height: 4.8, class: 'onfill' })],
  slash: () => [svg('circle', { ...ring, ...line }), svg('path', { d: 'M4.4 11.6l7.2-7.2', ...line })],
  skip: () => [svg('path', { d: 'M3 4l4 4-4 4M8.5 4l4 4-4 4', ...line })],
  query: () => [svg('path', { d: 'M8 1.2l6.8 6.8L8 14.8 1.2 8z', ...solid }), svg('path', { d: 'M8 4.8v3.6M8 11v.1', ...line, class: 'on' })],
  pause: () => [svg('path', { d: 'M5.5 3.5v9M10.5 3.5v9', ...line, 'stroke-width': '2.6' })],
  full: () => [svg('circle', { cx: 8, cy: 8, r: 6.5, ...solid })],
};
const shapeOf = {
  succeeded: 'check', failed: 'cross', terminated: 'square', orphaned: 'query', running: 'play', claimed: 'dot', queued: 'ring', held: 'dashed',
  skipped: 'skip', cancelled: 'slash', submitting: 'dashed', abandoned: 'query', stalled: 'pause',
  allowed: 'cross', open: 'ring', full: 'full', paused: 'pause', alive: 'play', silent: 'query', gone: 'cross', OK: 'check', WARNING: 'query', CRITICAL: 'cross',
};

export const icon = (state) =>
  svg('svg', { viewBox: '0 0 16 16', class: `icon s-${state}`, 'aria-hidden': 'true' }, (shapes[shapeOf[state]] || shapes.query)());

// badge is a state as a shape and a word. set changes it in place.
export function badge(state, text = word(state)) {
  const e = h('span', { class: 'badge' });
  e.set = (s, w = word(s)) => {
    if (e.dataset.state === s && e.dataset.word === w) return;
    e.dataset.state = s;
    e.dataset.word = w;
    e.className = `badge s-${s}`;
    fill(e, icon(s), h('span', {}, w));
  };
  e.set(state, text);
  return e;
}

// COUNTS are the numbers of a plan's counts that add up to all of its tasks, which its sums tell. A failure that the plan allows is in
// allowed, and in no state.
export const COUNTS = TASK.toSpliced(TASK.indexOf('running'), 0, 'allowed');
// rows is how many tasks a table of all tasks has: foreach tasks that have items are among them, and are counted nowhere.
export const rows = (p) => p.sums.tasks + p.counts.gathering + p.counts.gathered;

// shown is the state and the word that a badge has for a task, a change of one, or a kind of failure.
export const shown = (t) => (t.allowed ? ['allowed', `${word(t.state)} (allowed)`] : [t.state, word(t.state)]);

// progress is a bar of how many tasks are in each state, which says the same in words to who cannot see it. p is the plan.
export function progress(p) {
  const parts = new Map(COUNTS.map((s) => [s, h('span', { class: `part s-${s}` })]));
  const e = h('span', { class: 'progress', role: 'img' }, [...parts.values()]);
  e.set = ({ counts, sums }) => {
    const all = sums.tasks || 1;
    for (const [s, part] of parts) {
      const n = counts[s] || 0;
      part.hidden = n === 0;
      part.style.setProperty('flex-grow', String(n / all * 1000));
    }
    e.setAttribute('aria-label', summary(counts) || 'no tasks');
  };
  e.set(p);
  return e;
}

// summary: "12 succeeded, 1 failed, 3 running".
export const summary = (counts) => COUNTS.filter((s) => counts[s]).map((s) => `${number(counts[s])} ${word(s)}`).join(', ');

// began is when a plan last began to run: when it was submitted or, if it has ended since, when a retry let it run again.
export const began = (p) => p.retried || p.created;

// tookPlan is how long a plan has run since it began.
export const tookPlan = (p) => between(began(p), p.ended);

// took is how long the last attempt of a task ran, or has been running: without the attempts before, and without what it waits for another one.
// left is about how much longer a plan takes, if anybody can tell.
export const left = (p) => p.seconds_left ? `, about ${p.seconds_left < 10 ? `${p.seconds_left} s` : duration(p.seconds_left * 1000)} left` : '';

export function took(t) {
  if (!t.started || !t.attempt && !finished(t.state)) return ''; // what ran before a retry is no attempt any more
  if (t.state === 'running') return between(t.started);
  return t.ended && new Date(t.ended) >= new Date(t.started) ? between(t.started, t.ended) : '';
}

// how says in words how a task ended, or is. How an attempt ended is not how the next one is, which keeps that while it runs.
export function how(t) {
  if (active(t.state)) return '';
  const words = [];
  if (t.exit) words.push(t.exit.signal ? `ended by ${t.exit.signal}` : t.exit.code !== 0 ? `exit ${t.exit.code}` : '');
  const said = t.exit && t.reason === 'signal' || t.detail && t.reason === 'items'; // which tells how many
  if (t.reason && (t.reason !== t.state || t.reason === 'cancelled') && !said) words.push(reasons[t.reason] || t.reason);
  return words.filter(Boolean).join(', ');
}

const reasons = {
  timeout: 'ran longer than it may', lost: 'its node was lost', input: 'its input could not be made', output: 'its output cannot be kept', items: 'some of its items failed',
  error: 'its plugin could not run it', cancelled: 'by a person', signal: 'a signal ended it',
};

// startedBy is who submitted something: a person, or a schedule, with a link to that.
export const startedBy = (by) => (by?.startsWith('schedule ') ? h('a', { href: href('schedules', by.slice('schedule '.length)) }, by) : by && h('span', { class: 'strong' }, by));
