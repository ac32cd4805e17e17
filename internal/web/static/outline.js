// The graph of a plan as a list, for narrow screens: each task below one that it needs, further in. The drawing comes on demand.
import { h, fill, href, number, empty, errorBox, throttle } from './dom.js';
import { icon } from './states.js';
import { word } from './words.js';

const URGENT = ['failed', 'terminated', 'orphaned', 'allowed', 'running', 'claimed', 'queued', 'cancelled', 'unknown', 'held', 'succeeded', 'skipped'];
const DEEPEST = 6; // steps that are further in than the one before
const LISTED = 500;

// narrow reports whether the screen has no room for a drawing.
export const narrow = () => matchMedia('(max-width: 600px)').matches;

// tree returns the places of nodes in the order of the list: each after the parent that it comes latest after.
export function tree(g) {
  const n = g.names.length, needs = Array.from({ length: n }, () => []), below = Array.from({ length: n }, () => []), roots = [];
  for (let i = 0; i < g.edges.length; i += 3 + 2 * g.edges[i + 2]) needs[g.edges[i + 1]].push(g.edges[i]);
  const order = [...needs.keys()].sort((a, b) => g.level[a] - g.level[b] || g.y[a] - g.y[b]);
  for (const i of order) {
    const parent = needs[i].reduce((best, p) => (best < 0 || g.level[p] > g.level[best] ? p : best), -1);
    (parent < 0 ? roots : below[parent]).push(i);
  }
  const out = [], stack = roots.reverse().map((i) => [i, 0]);
  while (stack.length) {
    const [i, depth] = stack.pop();
    out.push({ i, depth, needs: needs[i] });
    for (const c of below[i].reverse()) stack.push([c, depth + 1]);
  }
  return out;
}

export async function outline(c, draw) {
  const list = h('ul', { class: 'outline' }), out = h('div', {});
  let g = null, rows = [], drawn = null;
  fill(c.element, h('div', { class: 'row' }, h('h2', { class: 'grow' }, 'Tasks in their order'),
    h('button', { type: 'button', onclick: async () => { off(); drawn = await draw(c); } }, 'Draw the graph')), list, out);

  function render() {
    const counts = new Map(g.counts.map(([node, ...all]) => [node, all]));
    fill(list, rows.slice(0, LISTED).map(({ i, depth, needs }) => {
      const all = counts.get(i), many = all && g.states.map((s, k) => [s, all[k]]).filter(([, n]) => n);
      const state = g.state[i] >= 0 ? g.states[g.state[i]] : URGENT.find((s) => many.some(([name]) => name === s)) || 'held';
      const name = g.item_labels?.[i] ? `${g.names[i]} (${g.item_labels[i]})` : g.names[i];
      const e = h('li', {}, icon(state), h('span', {}, g.ids[i] ? h('a', { href: href('tasks', g.ids[i]), 'data-row': '' }, name) : name,
        h('span', { class: 'muted' }, ' ', many ? many.map(([s, n]) => `${number(n)} ${word(s)}`).join(', ') : word(state),
          needs.length > 1 && `; needs ${needs.slice(0, 3).map((p) => g.names[p]).join(', ')}${needs.length > 3 ? ` and ${number(needs.length - 3)} more` : ''}`)));
      e.style.setProperty('padding-left', `${Math.min(depth, DEEPEST) * 16}px`);
      return e;
    }));
    fill(out, !rows.length ? empty('The plan has no tasks yet.') : rows.length > LISTED && h('p', { class: 'muted' }, `and ${number(rows.length - LISTED)} more, which the `, h('a', { href: `${c.base}/tasks` }, 'table of tasks'), ' lists'));
  }
  async function load() {
    if (drawn) return drawn.reload?.();
    try {
      const now = await c.get(`/plans/${c.id}/graph`, g && { since: g.layout });
      const fresh = !g || now.layout !== g.layout;
      g = fresh ? now : { ...g, ...Object.fromEntries(Object.entries(now).filter(([, v]) => v !== undefined)) };
      if (fresh) rows = g.names ? tree(g) : [];
      if (!list.contains(document.activeElement)) render();
    } catch (e) {
      if (e.name !== 'AbortError') fill(out, errorBox(e, load));
    }
  }
  const off = c.onEvent(throttle(() => { if (!drawn && !c.page.over) load(); }, 2000));
  c.page.onLeave(off);
  await load();
  return { reload: load, destroy: () => drawn?.destroy?.() };
}
