// A plan's graph. The server lays it out; here it is drawn, moved and searched, and takes its states from the plan's events: a task that is a box has
// its state from there at once, and for one that is in a group the server is asked for the counts anew, at most once a second.
import { Surface, STATES, URGENT, differs, far, follow, h, legend, mark, number, plural, refresher, shorten, styled, titled, tools } from './surface.js';
import { word } from './words.js';

const UNFOLDED = 20000; // tasks that the server draws one by one, if it is asked to
const SMALL = 80; // nodes, that are shown so large that they can be read
const HIGHLIGHTED = 400; // nodes before and after one, at most
const BROKEN = ['failed', 'terminated', 'orphaned'];
const PACE = 2000; // ms, after which it is asked again how far tasks are that say so
const LISTED = 300; // nodes of the text
const LINES = 6000; // edges that are drawn one by one; what shows more is so small that a picture of all of them does
const CROWD = 1500; // nodes on the screen, above which a graph is moved as a picture
const SHEET = 6e6; // pixels of that picture
const PICTURE = 2048; // pixels of the longer side of the picture of all edges
const STEEP = 10; // how many times as high as half the way between levels an edge is that is no curve
const CURVES = 1000; // edges that are so large that they are curves
const CELL = 512; // of the grids, in units of the world
const LANE = 22; // of room above the lane of handlers, for its title, in units of the world

export async function mount(element, { plan, api, open, onEvent }) {
  await styled();
  const view = new Graph(element, plan, api, open);
  const off = onEvent((change) => view.event(change));
  try {
    await view.load();
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    view.fail(e);
  }
  return { destroy: () => { off?.(); view.destroy(); }, reload: () => view.refresh(), view };
}

// A Grid knows what lies where.
class Grid {
  constructor(n, width, height, cellWidth, cellHeight) {
    Object.assign(this, { cellWidth, cellHeight, columns: Math.max(1, Math.ceil(width / cellWidth)), rows: Math.max(1, Math.ceil(height / cellHeight)) });
    this.cells = Array.from({ length: this.columns * this.rows }, () => []);
    this.seen = new Int32Array(n);
    this.look = 0;
  }

  visit(x0, y0, x1, y1, f) {
    const left = Math.max(0, Math.floor(x0 / this.cellWidth)), right = Math.min(this.columns - 1, Math.floor(x1 / this.cellWidth));
    const bottom = Math.min(this.rows - 1, Math.floor(y1 / this.cellHeight));
    for (let r = Math.max(0, Math.floor(y0 / this.cellHeight)); r <= bottom; r++) {
      for (let k = left; k <= right; k++) f(this.cells[r * this.columns + k]);
    }
  }

  put(i, x0, y0, x1, y1) { this.visit(x0, y0, x1, y1, (cell) => { if (cell[cell.length - 1] !== i) cell.push(i); }); }

  // within calls f once with each that may be in the rectangle.
  within(x0, y0, x1, y1, f) {
    const look = ++this.look;
    this.visit(x0, y0, x1, y1, (cell) => {
      for (const i of cell) {
        if (this.seen[i] === look) continue;
        this.seen[i] = look;
        f(i);
      }
    });
  }
}

class Graph {
  constructor(element, plan, api, open) {
    Object.assign(this, { plan, api, openTask: open });
    this.asked = { most: 0, open: '', from: 0 };
    this.n = 0;
    this.chosen = this.hovered = -1;
    this.only = null;
    this.hits = [];
    this.asking = 0; // answers that are under way
    this.late = []; // changes that came meanwhile, which they may not know of

    this.search = h('input', { type: 'search', placeholder: 'Find a task', 'aria-label': 'Find a task by its name', autocomplete: 'off', spellcheck: 'false' });
    this.search.addEventListener('input', () => this.find());
    this.search.addEventListener('keydown', (e) => {
      if (e.key === 'Enter') { e.preventDefault(); this.next(e.shiftKey ? -1 : 1); }
      if (e.key === 'Escape' && this.search.value) { e.preventDefault(); this.search.value = ''; this.find(); }
      if (e.key === 'ArrowDown') { e.preventDefault(); this.surface.canvas.focus(); }
    });
    this.found = h('span', { class: 'draw-hits', role: 'status' });
    this.whole = h('button', { type: 'button', hidden: true, onclick: () => this.show({ most: this.asked.most ? 0 : UNFOLDED, open: '', from: 0 }).then(() => this.begin()) });
    this.close = h('button', { type: 'button', hidden: true, onclick: () => this.show({ ...this.asked, open: '', from: 0 }) }, 'Close the group');
    this.note = h('p', { class: 'draw-note' });
    this.said = h('p', { class: 'draw-said', role: 'status', 'aria-live': 'polite' });
    this.legend = legend((state) => this.filter(state));
    this.stage = h('div', { class: 'stage' });
    this.text = h('details', {}, h('summary', {}, 'The graph as text'), this.list = h('ol', {}));
    this.text.addEventListener('toggle', () => this.write());
    const bar = h('div', { class: 'draw-bar' }, this.search, this.found, this.legend.element, h('span', { class: 'grow' }), this.close, this.whole);
    this.element = h('div', { class: 'drawing graph' }, bar, this.note, this.stage,
      h('p', { class: 'draw-keys' }, 'Drag or scroll to move, Ctrl and scroll to enlarge. Keys: arrows, + and −, f for all; Enter chooses a task, then arrows follow its lines and Enter opens it; / finds.'),
      this.text, this.said);
    element.replaceChildren(this.element);
    this.surface = new Surface(this.stage, 'Graph of the plan. Enter chooses a task, arrows follow its lines.', this);
    bar.insertBefore(tools(this.surface), this.close);
    this.tip = h('div', { class: 'draw-tip', hidden: true });
    this.stage.append(this.tip);
    this.legend.paint(this.surface.colours);
    this.refresh = refresher(() => this.load(true));
    this.following = follow(plan, this.refresh);
  }

  destroy() {
    this.following.end();
    this.refresh.end();
    clearTimeout(this.writing);
    clearTimeout(this.sooner);
    this.gone = true;
    this.surface.destroy();
    this.element.remove();
  }

  fail(e) {
    this.note.textContent = '';
    this.stage.hidden = true;
    this.note.append(h('span', { class: 'draw-failed' }, `The graph cannot be shown: ${e.message} `, h('button', { type: 'button', onclick: () => this.show(this.asked) }, 'Try again')));
  }

  // show asks for another fold of the plan.
  async show(asked) {
    const was = this.asked;
    this.asked = asked;
    this.element.setAttribute('aria-busy', 'true');
    try {
      await this.load();
      this.stage.hidden = false;
      if (this.search.value && this.hits.length && !asked.find && !asked.open) this.next(1);
    } catch (e) {
      this.asked = was;
      if (this.n) this.note.textContent = `That could not be shown: ${e.message}`;
      else this.fail(e);
    }
    this.element.removeAttribute('aria-busy');
  }

  // begin shows the first failure of a graph that is not seen as a whole.
  begin() {
    const bad = [...this.names.keys()].filter((i) => BROKEN.includes(this.urgent(i)));
    if (this.gone || !bad.length || this.sees() && this.surface.view.kx >= 0.45) return;
    this.choose(bad.reduce((best, i) => (this.x[i] < this.x[best] || (this.x[i] === this.x[best] && this.y[i] < this.y[best]) ? i : best)));
  }

  // load asks for the graph. A load that another one overtakes ends with that one, whose answer has what both asked for.
  load(again) { return this.loading = this.read(again); }

  async read(again) {
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(this.asked)) if (value) q.set(name, value);
    if (again && this.layout) q.set('since', this.layout);
    const turn = this.turn = (this.turn || 0) + 1;
    let g;
    this.asking++;
    try {
      g = await this.api.get(`/plans/${this.plan.id}/graph${q.size ? `?${q}` : ''}`);
    } finally {
      this.asking--;
    }
    if (this.gone) return;
    if (turn !== this.turn) return this.loading;
    if (this.asked.find) this.asked = { most: this.asked.most, open: g.open || '', from: g.from || 0 };
    if (!again || g.layout !== this.layout) this.take(g, again);
    this.states(g);
    for (const c of this.late.splice(0)) this.event(c);
    if (!again) this.surface.paint();
  }

  // take makes of an answer what is drawn.
  take(g, again) {
    const kept = this.chosen >= 0 ? this.name(this.chosen) : null;
    const first = this.layout === undefined, whole = !first && this.sees();
    Object.assign(this, { layout: g.layout, tasks: g.tasks, width: g.width || 0, height: g.height || 0, w: g.box_width || 0, h: g.box_height || 0 });
    this.names = g.names || [];
    this.titles = this.names.map((name, i) => titled(name, g.item_labels?.[i])); // what is shown; names are what is asked for
    this.ids = g.ids || [];
    this.n = this.names.length;
    this.x = Int32Array.from(g.x || []);
    this.y = Int32Array.from(g.y || []);
    this.level = g.level || [];
    this.differ = differs(this.names);
    this.labels = new Map();
    this.groups = new Map(); // by their nodes; of a foreach with its items, too, which has an id and a state of its own
    this.heads = new Set(g.heads); // foreach tasks beside their items, which are counted in their place
    this.lenient = new Set(g.lenient); // tasks whose failures the plan allows
    this.lane = g.lane || null;
    this.last = g.finally || null; // the frame of the tasks of finally
    (g.counts || []).forEach((c, i) => this.groups.set(c[0], { ...g.groups[i], node: c[0], counts: c.slice(1) }));
    this.state = Int8Array.from(g.state || []);
    this.byID = new Map();
    this.ids.forEach((id, i) => { if (id) this.byID.set(id, i); });
    this.readEdges(g.edges || [], g.weights);
    this.along = new Set(g.along); // edges from items to those with the same index
    const aside = (i) => this.lane && this.y[i] >= this.lane[1];
    this.bottom = this.names.reduce((most, _, i) => (aside(i) ? most : Math.max(most, this.y[i] + this.h)), 0); // of the others
    const last = (i) => this.last && !aside(i) && this.x[i] >= this.last[0] && this.y[i] >= this.last[1] && this.y[i] < this.last[1] + this.last[3];
    this.toLane = Uint8Array.from(this.from, (i, e) => aside(i) !== aside(this.to[e]) || last(i) !== last(this.to[e])); // between a lane and the others: one line stands for them
    this.index();
    this.chosen = this.hovered = -1;
    this.near = null;
    this.picture = null;
    this.progress = new Map();
    this.tip.hidden = true;
    if (kept !== null) this.chosen = this.names.findIndex((_, i) => this.name(i) === kept);
    this.about();
    if (this.search.value) this.find(true);
    this.surface.tall(this.height * 1.15 + 2 * this.surface.margin + 2);
    if (!again || first || whole) this.fit(true);
    this.surface.clamp();
    this.surface.redraw();
    if (this.text.open) this.write();
  }

  name(i) { return this.ids[i] || `${this.groups.get(i)?.key} ${this.groups.get(i)?.from || 0}`; }

  readEdges(list, weights) {
    const edges = [];
    for (let i = 0; i < list.length; i += 3 + 2 * list[i + 2]) edges.push(i);
    const m = this.m = edges.length;
    this.from = new Int32Array(m);
    this.to = new Int32Array(m);
    this.points = new Array(m);
    this.weights = weights;
    const out = new Int32Array(this.n + 1), into = new Int32Array(this.n + 1);
    edges.forEach((at, e) => {
      const a = list[at], b = list[at + 1], p = [this.x[a] + this.w, this.y[a] + this.h / 2];
      for (let k = 0; k < 2 * list[at + 2]; k++) p.push(list[at + 3 + k]);
      p.push(this.x[b], this.y[b] + this.h / 2);
      this.from[e] = a;
      this.to[e] = b;
      this.points[e] = p;
      out[a + 1]++;
      into[b + 1]++;
    });
    for (let i = 0; i < this.n; i++) { out[i + 1] += out[i]; into[i + 1] += into[i]; }
    this.outAt = out;
    this.inAt = into;
    this.outE = new Int32Array(m);
    this.inE = new Int32Array(m);
    const o = out.slice(), n = into.slice();
    for (let e = 0; e < m; e++) {
      this.outE[o[this.from[e]]++] = e;
      this.inE[n[this.to[e]]++] = e;
    }
  }

  after(i) { return this.outE.subarray(this.outAt[i], this.outAt[i + 1]); }
  before(i) { return this.inE.subarray(this.inAt[i], this.inAt[i + 1]); }

  // index puts nodes and edges into grids, so that what is seen, or pointed at, is found without looking at all of them.
  index() {
    const cell = Math.max(CELL, Math.sqrt(this.width * this.height / (4 * this.n + 1000)));
    this.nodes = new Grid(this.n, this.width, this.height, cell, cell);
    for (let i = 0; i < this.n; i++) this.nodes.put(i, this.x[i], this.y[i], this.x[i] + this.w, this.y[i] + this.h);
    // Those of a wide level are as long as it: each is in many cells, of which there are few.
    this.edges = new Grid(this.m, this.width, this.height, Math.max(CELL, this.width / 64), Math.max(CELL, this.height / 64));
    for (let e = 0; e < this.m; e++) {
      const p = this.points[e]; // by its pieces: a long edge is not everywhere in its bounds
      for (let k = 2; k < p.length; k += 2) {
        this.edges.put(e, Math.min(p[k - 2], p[k]), Math.min(p[k - 1], p[k + 1]), Math.max(p[k - 2], p[k]), Math.max(p[k - 1], p[k + 1]));
      }
    }
  }

  states(g) {
    this.tasks = g.tasks;
    this.progress = new Map((g.progress || []).map((p) => [p.node, p])); // of tasks that run
    clearTimeout(this.sooner);
    if (this.progress.size) this.sooner = setTimeout(this.refresh, PACE); // no event tells of it
    this.state = Int8Array.from(g.state || []);
    this.totals = new Array(STATES.length).fill(0);
    this.state.forEach((s, i) => { if (this.single(i)) this.totals[s]++; });
    for (const [node, ...counts] of g.counts || []) {
      this.groups.get(node).counts = counts;
      counts.forEach((n, i) => { this.totals[i] += n; });
    }
    this.restated();
  }

  // single reports whether a node counts as one task.
  single(i) { return !this.groups.has(i) && !this.heads.has(i); }

  restated() {
    this.legend.set(this.totals);
    this.stale = true; // the miniature's colours
    this.version = (this.version || 0) + 1;
    this.surface.redraw();
    if (this.text.open && !this.writing) this.writing = setTimeout(() => { this.writing = 0; this.write(); }, 1000);
  }

  event(change) {
    this.following.change(change);
    if (this.asking) this.late.push(change);
    if (!this.state) return;
    const i = this.byID.get(change.task), allowed = this.lenient?.has(i) && BROKEN.includes(change.state), s = STATES.indexOf(allowed ? 'allowed' : change.state);
    if (i === undefined || s < 0 || this.groups.has(i)) {
      this.refresh();
      return;
    }
    if (this.state[i] === s) return;
    if (this.single(i)) {
      this.totals[this.state[i]]--;
      this.totals[s]++;
    }
    this.state[i] = s;
    this.restated();
    if (i === this.chosen) this.say(i);
  }

  about() {
    const folded = this.groups.size > 0;
    const parts = [];
    if (!this.n) parts.push('The plan has no tasks yet.');
    else if (folded) {
      const items = [...this.groups.values()].every((g) => g.key.startsWith('of:'));
      if (items) parts.push('A foreach is one box. Open it to see its items.');
      else parts.push(`${plural(this.tasks, 'task')} in ${plural(this.n, 'box')}`.replace('boxs', 'boxes') + ': those of one step with names alike are one. Open one to see its tasks.');
    }
    this.note.textContent = parts.join(' ');
    this.note.hidden = !parts.length;
    this.whole.hidden = this.tasks > UNFOLDED || !(folded || this.asked.most);
    this.whole.textContent = this.asked.most ? 'Fold' : `Show all ${number(this.tasks)}`;
    this.close.hidden = !this.asked.open;
    this.surface.canvas.setAttribute('aria-label', `Graph of the plan, ${plural(this.tasks, 'task')}. Enter chooses a task, arrows follow its lines.`);
  }

  // What the surface asks.

  world() { return { width: this.width || 1, height: this.height || 1 }; }

  limits() {
    const { width, height } = this.surface.size, m = 2 * this.surface.margin;
    const all = Math.min((width - m) / Math.max(this.width, 1), (height - m) / Math.max(this.height, 1));
    return { least: Math.min(all, 0.5) * 0.9, most: 3 };
  }

  resized(first) { if ((first || this.fitted) && this.n) this.fit(true); }
  recoloured(p) { this.legend.paint(p); this.picture = null; }
  moved() {
    this.tip.hidden = true;
    this.fitted = false;
  }

  // fit shows all. At first it is the beginning alone of what could not be read otherwise though it is small, or would be as thin as a thread.
  fit(first) {
    const { width, height } = this.surface.size, m = 2 * this.surface.margin;
    if (!width || !this.n) return;
    const across = (width - m) / this.width, down = (height - m) / this.height, all = Math.min(across, down);
    let k = Math.min(all, 1.15);
    const thread = all < 0.3 && Math.min(this.width, this.height) * all < 60;
    if (first && ((this.n <= SMALL && all < 0.6) || thread)) k = Math.min(0.8, Math.max(across, down, 0.6));
    const begin = (world, room) => (world * k <= room - m ? (world - room / k) / 2 : -this.surface.margin / k);
    const to = { x: begin(this.width, width), y: this.height * k <= height - m ? begin(this.height, height) : this.beginning(height / k, this.surface.margin / k), kx: k, ky: k };
    if (first) {
      this.fitted = true;
      Object.assign(this.surface.view, to);
      this.surface.redraw();
    } else this.surface.glide(to);
  }

  // beginning is the top of a view of that height which has what the plan begins with in its middle, as far as the graph goes on above and below it.
  beginning(height, room) {
    let sum = 0, n = 0;
    this.level.forEach((l, i) => { if (l === 0) { sum += this.y[i] + this.h / 2; n++; } });
    return Math.max(-room, Math.min(this.height + room - height, (n ? sum / n : this.height / 2) - height / 2));
  }

  // sees reports whether all of the graph is seen.
  sees() {
    const v = this.surface.view, { width, height } = this.surface.size;
    return v.x <= 0 && v.y <= 0 && v.x + width / v.kx >= this.width && v.y + height / v.ky >= this.height;
  }

  hit(px, py) {
    const v = this.surface.view, x = v.x + px / v.kx, y = v.y + py / v.ky, reach = 4 / v.kx;
    let best = -1, least = Infinity;
    this.nodes.within(x - reach, y - reach, x + reach, y + reach, (i) => {
      const dx = Math.max(this.x[i] - x, 0, x - this.x[i] - this.w), dy = Math.max(this.y[i] - y, 0, y - this.y[i] - this.h);
      const d = Math.hypot(dx, dy);
      if (d <= reach && d < least) { best = i; least = d; }
    });
    return best;
  }

  press(px, py) {
    const map = this.map;
    if (map && px >= map.x && px <= map.x + map.width && py >= map.y && py <= map.y + map.height) {
      const v = this.surface.view;
      this.surface.glide({ x: (px - map.x) / map.k - this.surface.size.width / v.kx / 2, y: (py - map.y) / map.k - this.surface.size.height / v.ky / 2 });
      return;
    }
    const i = this.hit(px, py);
    if (i >= 0 && i === this.chosen) {
      this.enter(i);
      return;
    }
    this.choose(i, false);
    if (i >= 0) this.point(i, px, py);
  }

  hover(px, py) {
    const i = px === null ? -1 : this.hit(px, py);
    this.surface.canvas.classList.toggle('over', i >= 0);
    if (i >= 0) this.point(i, px, py);
    else this.tip.hidden = true;
    if (i === this.hovered) return;
    this.hovered = i;
    this.around();
  }

  // point shows what is said of a node beside the pointer.
  point(i, px, py) {
    const last = i === this.chosen ? `Click once more to open ${!this.groups.has(i) ? 'the task' : this.ids[i] ? 'its items' : 'the group'}` : '';
    this.tip.replaceChildren(h('b', {}, this.title(i)), h('span', {}, this.words(i)), ...(last ? [h('span', {}, last)] : []));
    this.tip.hidden = false;
    const { width, height } = this.surface.size, w = this.tip.offsetWidth, t = this.tip.offsetHeight;
    this.tip.style.left = `${Math.max(4, Math.min(px + 14, width - w - 4))}px`;
    this.tip.style.top = `${py + 18 + t > height ? Math.max(4, py - t - 12) : py + 18}px`;
  }

  title(i) {
    const g = this.groups.get(i);
    if (!g) return this.titles[i];
    const from = g.from || 0;
    return g.count === g.of ? this.names[i] : `${this.names[i]}, ${number(from + 1)} to ${number(from + g.count)} of ${number(g.of)}`;
  }

  words(i) {
    const g = this.groups.get(i);
    const needs = this.before(i).length, needed = this.after(i).length;
    const lines = [needs ? `needs ${number(needs)}` : '', needed ? `needed by ${number(needed)}` : ''].filter(Boolean).join(', ');
    if (!g) return [word(STATES[this.state[i]]), far(this.progress.get(i)), lines].filter(Boolean).join('; ');
    const states = STATES.map((s, k) => (g.counts[k] ? `${number(g.counts[k])} ${word(s)}` : '')).filter(Boolean).join(', ');
    return this.ids[i] ? `${word(STATES[this.state[i]])}; ${plural(g.count, 'item')}: ${states}` : `${plural(g.count, 'task')}: ${states}`;
  }

  say(i) { this.said.textContent = `${this.title(i)}, ${this.words(i)}, step ${this.level[i] + 1}`; }

  choose(i, reveal = true) {
    this.chosen = i;
    this.around();
    if (i < 0) {
      this.tip.hidden = true;
      this.said.textContent = '';
      return;
    }
    this.say(i);
    if (reveal) {
      if (this.surface.view.kx < 0.45) this.approach(i);
      else this.surface.reveal(this.x[i], this.y[i], this.w, this.h);
    }
  }

  // approach shows a node so large that it can be read.
  approach(i) {
    const k = 0.9, { width, height } = this.surface.size;
    this.surface.glide({ kx: k, ky: k, x: this.x[i] + this.w / 2 - width / k / 2, y: this.y[i] + this.h / 2 - height / k / 2 });
  }

  enter(i) {
    const g = this.groups.get(i);
    if (g) {
      this.said.textContent = `Opening ${this.title(i)}`;
      const was = new Set(this.ids);
      this.show({ most: this.asked.most, open: g.key, from: g.from || 0 }).then(() => {
        const first = this.ids.findIndex((id) => id && !was.has(id));
        if (first >= 0 && !this.gone) this.choose(first);
      });
    } else this.openTask(this.ids[i]);
  }

  // around finds what the node that is chosen, or pointed at, needs, and what needs it.
  around() {
    const at = this.hovered >= 0 ? this.hovered : this.chosen;
    this.near = null;
    if (at >= 0) {
      const nodes = new Set([at]), edges = new Set();
      for (const [next, end] of [[(i) => this.before(i), this.from], [(i) => this.after(i), this.to]]) {
        const queue = [at];
        let room = HIGHLIGHTED;
        for (let k = 0; k < queue.length && room > 0; k++) {
          for (const e of next(queue[k])) {
            if (--room < 0) break;
            edges.add(e);
            if (!nodes.has(end[e])) { nodes.add(end[e]); queue.push(end[e]); }
          }
        }
      }
      this.near = { at, nodes, edges };
    }
    this.surface.redraw();
  }

  middle() {
    const v = this.surface.view, { width, height } = this.surface.size;
    return this.closest(v.x + width / v.kx / 2, v.y + height / v.ky / 2);
  }

  closest(x, y) {
    let best = -1, least = Infinity;
    for (let i = 0; i < this.n; i++) {
      const d = (this.x[i] + this.w / 2 - x) ** 2 + (this.y[i] + this.h / 2 - y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }

  // step goes from a node along its lines, or within its level.
  step(i, where) {
    const middle = this.y[i];
    let best = -1, least = Infinity;
    const offer = (j, d) => { if (d < least) { least = d; best = j; } };
    if (where === 'ArrowLeft') for (const e of this.before(i)) offer(this.from[e], Math.abs(this.y[this.from[e]] - middle));
    else if (where === 'ArrowRight') for (const e of this.after(i)) offer(this.to[e], Math.abs(this.y[this.to[e]] - middle));
    else {
      for (let j = 0; j < this.n; j++) {
        const d = (this.y[j] - middle) * (where === 'ArrowUp' ? -1 : 1);
        if (d > 0 && Math.abs(this.x[j] - this.x[i]) < this.w) offer(j, d);
      }
    }
    return best;
  }

  key(ev) {
    if (ev.key === '/') {
      this.search.focus();
      this.search.select();
      return true;
    }
    if (ev.key === 'Enter' || ev.key === ' ') {
      if (this.chosen >= 0) this.enter(this.chosen);
      else this.choose(this.middle());
      return true;
    }
    if (ev.key === 'Escape' && this.chosen >= 0) {
      this.choose(-1);
      return true;
    }
    if (ev.key.startsWith('Arrow') && !ev.shiftKey && this.chosen >= 0) {
      const next = this.step(this.chosen, ev.key);
      if (next >= 0) this.choose(next);
      else this.said.textContent = { ArrowLeft: 'It needs nothing', ArrowRight: 'Nothing needs it' }[ev.key] || 'There is no other that way';
      return true;
    }
    return false;
  }

  // Search.

  find(kept) {
    const word = this.search.value.trim().toLowerCase();
    this.hits = [];
    if (word) this.titles.forEach((title, i) => { if (title.toLowerCase().includes(word)) this.hits.push(i); });
    this.hits.sort((a, b) => this.x[a] - this.x[b] || this.y[a] - this.y[b]);
    const exact = this.hits.findIndex((i) => this.names[i].toLowerCase() === word);
    this.at = exact > 0 ? exact - 1 : -1;
    this.found.textContent = !word ? '' : this.hits.length ? plural(this.hits.length, 'match').replace('matchs', 'matches') : this.groups.size ? 'Enter looks into the groups' : 'None';
    this.hitSet = new Set(this.hits);
    this.surface.redraw();
    if (!kept && this.hits.length && word.length > 2) this.next(1);
  }

  async next(by) {
    const word = this.search.value.trim();
    if (!word) return;
    if (!this.hits.length) {
      if (!this.groups.size) return;
      await this.show({ most: this.asked.most, find: word });
      const i = this.names.indexOf(word);
      if (i >= 0) this.choose(i);
      else this.found.textContent = 'None of that name';
      return;
    }
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    this.found.textContent = `${number(this.at + 1)} of ${number(this.hits.length)}`;
    this.choose(this.hits[this.at]);
  }

  // Drawing.

  urgent(i) { // the state that stands for a node
    const s = this.state[i];
    if (s >= 0) return STATES[s];
    const counts = this.groups.get(i).counts;
    return URGENT.find((name) => counts[STATES.indexOf(name)] > 0) || 'held';
  }

  // filter shows where the tasks of a state are; if none of them is in sight it goes to the first.
  filter(state) {
    this.only = state;
    this.surface.redraw();
    if (state === null) return;
    const all = [...this.names.keys()].filter((i) => this.shows(i)), v = this.surface.view, { width, height } = this.surface.size;
    const seen = (i) => this.x[i] < v.x + width / v.kx && this.x[i] + this.w > v.x && this.y[i] < v.y + height / v.ky && this.y[i] + this.h > v.y;
    if (!all.length || all.some(seen)) return;
    const first = all.reduce((best, i) => (this.x[i] < this.x[best] || (this.x[i] === this.x[best] && this.y[i] < this.y[best]) ? i : best));
    this.surface.reveal(this.x[first], this.y[first], this.w, this.h);
  }

  shows(i) { // whether it has the state that the legend chose
    if (this.only === null) return true;
    const s = STATES.indexOf(this.only);
    return this.groups.has(i) ? this.groups.get(i).counts[s] > 0 : this.state[i] === s;
  }

  draw(c, { width, height }) {
    if (!this.n || !this.state) return;
    const v = this.surface.view, k = v.kx, p = this.surface.colours;
    const x0 = v.x, y0 = v.y, x1 = v.x + width / k, y1 = v.y + height / k;
    const dim = this.near || this.only !== null || this.hits.length ? 0.35 : 1;
    const part = this.n * Math.max(0, Math.min(x1, this.width) - Math.max(x0, 0)) * Math.max(0, Math.min(y1, this.height) - Math.max(y0, 0)) / (this.width * this.height);
    const still = k === this.drawnAt; // it is moved, or changes, and is not enlarged
    this.drawnAt = k;
    const inside = (i) => this.x[i] <= x1 && this.x[i] + this.w >= x0 && this.y[i] <= y1 && this.y[i] + this.h >= y0;
    c.globalAlpha = dim;
    if (still && part > CROWD && this.sheetFits(k)) {
      const sheet = this.wholeSheet(k, p), ratio = this.surface.ratio;
      c.save();
      c.setTransform(1, 0, 0, 1, 0, 0);
      c.drawImage(sheet, Math.round(-v.x * k * ratio), Math.round(-v.y * k * ratio));
      c.restore();
    }
    c.save();
    c.translate(-v.x * k, -v.y * k);
    c.scale(k, k);
    if (this.lane) this.handlers(c, k, dim, p);
    if (this.last) this.finallyFrame(c, k, dim, p);
    if (!(still && part > CROWD && this.sheetFits(k))) {
      const nodes = [];
      this.nodes.within(x0, y0, x1, y1, (i) => { if (inside(i)) nodes.push(i); });
      let lines = []; // null: too many
      if (part > CROWD && this.m > LINES) lines = null;
      else {
        this.edges.within(x0, y0, x1, y1, (e) => { if (this.touches(this.points[e], x0, y0, x1, y1)) lines.push(e); });
        // Of very many that pass by only those matter that begin or end here: those of a wide fan are all next to each other.
        if (k >= 0.25 && lines.length > CURVES) lines = lines.filter((e) => inside(this.from[e]) || inside(this.to[e]));
        if (lines.length > LINES) lines = null;
        lines = lines && lines.filter((e) => !this.toLane[e]);
      }
      this.lines(c, lines, k, dim, p);
      this.boxes(c, nodes, k, dim, p);
    }
    if (this.near) {
      c.strokeStyle = p.text;
      c.lineWidth = Math.max(1.6, 1.4 / k);
      c.globalAlpha = 1;
      c.beginPath();
      for (const e of this.near.edges) this.line(c, this.points[e], k);
      c.stroke();
      c.fillStyle = p.text;
      c.beginPath();
      if (k >= 0.3) for (const e of this.near.edges) this.head(c, this.points[e]);
      c.fill();
    }
    if (dim < 1) {
      const marked = this.near ? [...this.near.nodes] : this.only !== null ? [...this.names.keys()].filter((i) => this.shows(i)) : this.hits;
      this.boxes(c, marked.filter(inside), k, 1, p);
    }
    if (this.chosen >= 0) {
      const grow = 3 / k;
      c.globalAlpha = 1;
      c.strokeStyle = p.focus;
      c.lineWidth = 2.5 / k;
      c.beginPath();
      c.roundRect(this.x[this.chosen] - grow, this.y[this.chosen] - grow, this.w + 2 * grow, this.h + 2 * grow, 6 + grow);
      c.stroke();
    }
    c.restore();
    this.miniature(c, width, height, p);
  }

  // handlers draws the ground of the lane in which handlers and clean-ups lie, and its title.
  handlers(c, k, dim, p) {
    this.frame(c, k, dim, p, this.lane, 'Handlers and clean-ups', () => this.fromFrame(c, p));
  }

  // finallyFrame draws the ground of the tasks of finally, with one line to it that stands for the end of all others.
  finallyFrame(c, k, dim, p) {
    const [x, y, , t] = this.last, at = y + t / 2, end = x - 10;
    this.frame(c, k, dim, p, this.last, 'Finally', () => {
      c.beginPath();
      c.moveTo(end - 34, at);
      c.lineTo(end - 7, at);
      c.stroke();
      c.fillStyle = p.strong;
      c.beginPath();
      c.moveTo(end, at);
      c.lineTo(end - 7, at - 3.5);
      c.lineTo(end - 7, at + 3.5);
      c.fill();
    });
  }

  // frame draws a dashed frame around a part of the graph, with its title and the line that leads to it.
  frame(c, k, dim, p, [x, y, w, t], title, line) {
    c.globalAlpha = dim;
    c.strokeStyle = p.strong;
    c.lineWidth = Math.max(1, 0.8 / k);
    c.setLineDash([6 / k, 4 / k]);
    c.beginPath();
    c.roundRect(x - 10, y - LANE, w + 20, t + LANE + 10, 8);
    c.stroke();
    c.setLineDash([]);
    line();
    if (k < 0.45) return;
    c.font = `11.5px ${p.font}`;
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    const size = c.measureText(title).width;
    c.fillStyle = p.bg;
    c.fillRect(x, y - LANE - 7, size + 8, 14);
    c.fillStyle = p.soft;
    c.fillText(title, x + 4, y - LANE + 0.5);
  }

  // fromFrame draws the one line from the other tasks to the lane. Those of a task in it are drawn while it is chosen.
  fromFrame(c, p) {
    const [x, y, w] = this.lane, at = x + w / 2, top = this.bottom + 6, end = y - LANE;
    if (end - top < 10) return;
    c.beginPath();
    c.moveTo(at, top);
    c.lineTo(at, end - 7);
    c.stroke();
    c.fillStyle = p.strong;
    c.beginPath();
    c.moveTo(at, end);
    c.lineTo(at - 3.5, end - 7);
    c.lineTo(at + 3.5, end - 7);
    c.fill();
  }

  // A sheet is a picture of all of it at one size, from which a graph of many small boxes is moved without being drawn again.
  sheetFits(k) { return k < 0.45 && this.width * this.height * (k * this.surface.ratio) ** 2 <= SHEET; }

  wholeSheet(k, p) {
    const ratio = this.surface.ratio, s = this.sheet;
    if (s && s.k === k && s.ratio === ratio && s.layout === this.layout && s.colours === p && s.version === this.version) return s.e;
    const e = s?.e || h('canvas'), c = e.getContext('2d');
    e.width = Math.ceil(this.width * k * ratio) + 2;
    e.height = Math.ceil(this.height * k * ratio) + 2;
    c.scale(k * ratio, k * ratio);
    this.lines(c, this.m > LINES ? null : [...this.from.keys()].filter((e) => !this.toLane[e]), k, 1, p);
    this.boxes(c, [...this.names.keys()], k, 1, p);
    this.sheet = { k, ratio, layout: this.layout, colours: p, version: this.version, e };
    return e;
  }

  // lines draws edges; null: a picture of all of them.
  lines(c, lines, k, dim, p) {
    c.globalAlpha = dim;
    if (!lines) {
      c.drawImage(this.overview().edges, 0, 0, this.width, this.height);
      return;
    }
    c.strokeStyle = p.strong;
    c.lineWidth = Math.max(1.2, 0.8 / k);
    c.globalAlpha = dim * (0.55 + 0.45 * Math.min(1, 500 / Math.max(lines.length, 1)));
    for (let i = 0; i < lines.length;) { // in pieces: a path that is very long is slow
      c.beginPath();
      for (const end = Math.min(i + 500, lines.length); i < end; i++) this.line(c, this.points[lines[i]], k);
      c.stroke();
    }
    if (k < 0.45 || lines.length > 1200) return;
    const double = lines.filter((e) => this.along.has(e));
    for (const [style, wide] of [[p.strong, 4.2], [p.bg, 1.8]]) {
      c.strokeStyle = style;
      c.lineWidth = wide;
      c.beginPath();
      for (const e of double) this.line(c, this.points[e], k);
      c.stroke();
    }
    c.fillStyle = p.strong;
    c.beginPath();
    for (const e of lines) this.head(c, this.points[e]);
    c.fill();
  }

  // touches reports whether some piece of an edge may be seen in a rectangle.
  touches(p, x0, y0, x1, y1) {
    for (let i = 2; i < p.length; i += 2) {
      if (Math.min(p[i - 2], p[i]) <= x1 && Math.max(p[i - 2], p[i]) >= x0 && Math.min(p[i - 1], p[i + 1]) <= y1 && Math.max(p[i - 1], p[i + 1]) >= y0) return true;
    }
    return false;
  }

  // line adds the way of an edge to the path: straight through levels, in a bow between them.
  line(c, p, k) {
    c.moveTo(p[0], p[1]);
    for (let i = 2; i < p.length; i += 2) {
      const x = p[i - 2], y = p[i - 1];
      if (k < 0.25 || y === p[i + 1]) c.lineTo(p[i], p[i + 1]);
      else {
        const bow = (p[i] - x) / 2;
        if (Math.abs(p[i + 1] - y) > STEEP * bow) this.elbow(c, x, y, p[i], p[i + 1]);
        else c.bezierCurveTo(x + bow, y, p[i] - bow, p[i + 1], p[i], p[i + 1]);
      }
    }
  }

  // elbow goes to a place far above or below by way of the middle between two levels: the lines of a wide fan are one line there, not a wall.
  elbow(c, x0, y0, x1, y1) {
    const x = (x0 + x1) / 2, r = Math.min(8, (x1 - x0) / 2), way = y1 > y0 ? r : -r;
    c.lineTo(x - r, y0);
    c.quadraticCurveTo(x, y0, x, y0 + way);
    c.lineTo(x, y1 - way);
    c.quadraticCurveTo(x, y1, x + r, y1);
    c.lineTo(x1, y1);
  }

  head(c, p) {
    const x = p[p.length - 2], y = p[p.length - 1];
    c.moveTo(x, y);
    c.lineTo(x - 7, y - 3.5);
    c.lineTo(x - 7, y + 3.5);
  }

  boxes(c, nodes, k, alpha, p) {
    c.globalAlpha = alpha;
    if (k < 0.45) { // blocks, of one state at a time; never so small that they are lost
      const w = Math.max(this.w, 2 / k), t = Math.max(this.h, 2 / k);
      const by = new Map();
      for (const i of nodes) {
        const s = this.urgent(i);
        if (!by.has(s)) by.set(s, []);
        by.get(s).push(i);
      }
      for (const [s, list] of by) {
        c.fillStyle = p.states[s];
        c.beginPath();
        for (const i of list) c.rect(this.x[i], this.y[i], w, t);
        c.fill();
      }
      if (k * this.h >= 9 && nodes.length < 3000) {
        for (const i of nodes) mark(c, this.urgent(i), this.x[i] + this.w / 2, this.y[i] + this.h / 2, 11, p.bg, p.states[this.urgent(i)]);
      }
      return;
    }
    c.textBaseline = 'middle';
    for (const i of nodes) this.box(c, i, p);
  }

  box(c, i, p) {
    const x = this.x[i], y = this.y[i], { w, h: t } = this, g = this.groups.get(i), s = this.urgent(i), colour = p.states[s];
    c.fillStyle = p.bg;
    if (g) { // a pile
      c.strokeStyle = p.strong;
      c.lineWidth = 1;
      c.beginPath();
      c.roundRect(x + 4, y - 4, w, t, 6);
      c.fill();
      c.stroke();
    }
    c.beginPath();
    c.roundRect(x, y, w, t, 6);
    c.fillStyle = p.box;
    c.fill();
    c.strokeStyle = colour;
    c.lineWidth = s === 'held' || s === 'queued' ? 1 : 1.6;
    c.stroke();
    const progress = s === 'running' && !g && this.progress.get(i);
    mark(c, s, x + 17, y + (g || progress ? t / 2 - 5 : t / 2), 8, colour, p.box);
    c.fillStyle = p.text;
    c.font = `500 12.5px ${p.font}`;
    c.textAlign = 'left';
    const room = w - 40;
    if (progress) {
      c.fillText(this.label(c, i, room), x + 31, y + t / 2 - 4.5);
      this.share(c, x + 9, y + t - 10, w - 18, progress.fraction, p);
      return;
    }
    if (!g) {
      c.fillText(this.label(c, i, room), x + 31, y + t / 2 + 0.5);
      return;
    }
    c.fillText(this.label(c, i, room), x + 31, y + t / 2 - 4.5);
    const count = `×${number(g.count)}`;
    c.font = `10.5px ${p.font}`;
    const size = c.measureText(count).width;
    c.textAlign = 'right';
    c.fillStyle = p.soft;
    c.fillText(count, x + w - 9, y + t - 8);
    c.textAlign = 'left';
    const total = g.counts.reduce((a, b) => a + b, 0) || 1, long = w - 24 - size; // how many are in each state
    let at = x + 9;
    for (const name of URGENT) {
      const n = g.counts[STATES.indexOf(name)];
      if (!n) continue;
      const part = Math.max(long * n / total, 2);
      c.fillStyle = p.states[name];
      c.fillRect(at, y + t - 10, Math.min(part, x + 9 + long - at), 4);
      at = Math.min(at + part, x + 7 + long);
    }
  }

  // share draws a bar of which a part is done.
  share(c, x, y, width, part, p) {
    c.fillStyle = p.line;
    c.fillRect(x, y, width, 4);
    c.fillStyle = p.states.running;
    c.fillRect(x, y, width * Math.min(Math.max(part, 0), 1), 4);
  }

  // label is a name, cut to what there is room for. What an item is for is cut at its end.
  label(c, i, room) {
    const kept = this.labels.get(i);
    if (kept !== undefined) return kept;
    let text = this.titles[i];
    const name = this.names[i].length + 2;
    if (text.length > name && c.measureText(text).width > room && c.measureText(`${text.slice(0, name + 4)}…)`).width <= room) {
      let n = text.length;
      while (n > name && c.measureText(`${text.slice(0, n)}…)`).width > room) n--;
      text = `${text.slice(0, n)}…)`;
    } else text = shorten(c, text, room, this.differ[i]);
    this.labels.set(i, text);
    return text;
  }

  // overview draws all edges once as a picture, and all nodes as another one, for when they are too many and too small.
  overview() {
    const p = this.surface.colours;
    if (!this.picture) {
      const k = Math.min(1, PICTURE / Math.max(this.width, this.height, 1));
      const edges = h('canvas', { width: Math.max(1, Math.ceil(this.width * k)), height: Math.max(1, Math.ceil(this.height * k)) });
      const c = edges.getContext('2d');
      c.scale(edges.width / this.width, edges.height / this.height);
      c.strokeStyle = p.strong;
      c.lineWidth = 1.2 / k;
      c.globalAlpha = Math.max(0.2, Math.min(0.7, 8000 / Math.max(this.m, 1)));
      for (let e = 0; e < this.m;) {
        c.beginPath();
        for (const end = Math.min(e + 500, this.m); e < end; e++) if (!this.toLane[e]) this.line(c, this.points[e], 0);
        c.stroke();
      }
      this.picture = { edges };
    }
    return this.picture;
  }

  // miniature shows where in a large graph one is.
  miniature(c, width, height, p) {
    const v = this.surface.view, shownW = width / v.kx, shownH = height / v.ky;
    this.map = null;
    if (shownW >= this.width * 0.7 && shownH >= this.height * 0.7) return;
    const most = { w: Math.min(190, width * 0.34), h: Math.min(120, height * 0.28) };
    const k = Math.min(most.w / this.width, most.h / this.height);
    const w = Math.max(this.width * k, 8), t = Math.max(this.height * k, 8), x = width - w - 14, y = height - t - 14;
    const now = performance.now();
    const m = this.mini;
    if (!m || m.layout !== this.layout || m.colours !== p || m.w !== w || (this.stale && now - m.at > 1000)) {
      const ratio = this.surface.ratio, e = h('canvas', { width: Math.ceil(w * ratio), height: Math.ceil(t * ratio) }), d = e.getContext('2d');
      d.scale(e.width / this.width, e.height / this.height);
      const bw = Math.max(this.w, 1.2 / k), bh = Math.max(this.h, 1.2 / k);
      for (let i = 0; i < this.n; i++) {
        d.fillStyle = p.states[this.urgent(i)];
        d.fillRect(this.x[i], this.y[i], bw, bh);
      }
      this.mini = { layout: this.layout, colours: p, w, at: now, e };
      this.stale = false;
    }
    c.globalAlpha = 0.94;
    c.fillStyle = p.bg;
    c.strokeStyle = p.strong;
    c.lineWidth = 1;
    c.beginPath();
    c.roundRect(x - 6, y - 6, w + 12, t + 12, 5);
    c.fill();
    c.stroke();
    c.globalAlpha = 0.8;
    c.drawImage(this.mini.e, x, y, w, t);
    c.globalAlpha = 1;
    const left = Math.max(v.x, 0), top = Math.max(v.y, 0), right = Math.min(v.x + shownW, this.width), bottom = Math.min(v.y + shownH, this.height);
    c.strokeStyle = p.focus;
    c.lineWidth = 1.5;
    c.strokeRect(x + left * k - 1, y + top * k - 1, Math.max((right - left) * k, 3) + 2, Math.max((bottom - top) * k, 3) + 2);
    this.map = { x, y, width: w, height: t, k };
  }

  // write makes the text of the graph: what is on the canvas, for who does not see it.
  write() {
    if (!this.text.open || this.list.contains(document.activeElement)) return; // who is in it would be thrown out
    const order = [...this.names.keys()].sort((a, b) => this.level[a] - this.level[b] || this.y[a] - this.y[b]);
    const items = order.slice(0, LISTED).map((i) => {
      const needs = [...this.before(i)].slice(0, 5).map((e) => this.title(this.from[e])), more = this.before(i).length - needs.length;
      return h('li', {}, h('button', { type: 'button', onclick: () => this.enter(i) }, this.title(i)), ` step ${this.level[i] + 1}; ${this.words(i)}`,
        needs.length ? `: ${needs.join(', ')}${more > 0 ? ` and ${number(more)} more` : ''}` : '');
    });
    if (order.length > LISTED) items.push(h('li', {}, `and ${number(order.length - LISTED)} more, which the table of tasks lists`));
    this.list.replaceChildren(...items);
  }
}
