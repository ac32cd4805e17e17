// A plan's time line: a row a task, a row a foreach with its items, and, of a plan of many, a row for tasks alike. A row of several shows the longest of
// them, and those that failed, as bars below how many ran at a time, and can be opened. The critical path, which says what the plan's length was made of, is marked.
import { Surface, STATES, differs, far, follow, h, legend, mark, number, plural, refresher, shorten, span, styled, titled, tools } from './surface.js';
import { word } from './words.js';

const ROW = 24, BAR = 14, AXIS = 28; // pixels
const PACE = 2000; // ms, after which it is asked again how far tasks are that say so
const LISTED = 300;
const BROKEN = ['failed', 'terminated', 'orphaned', 'allowed'];
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 21600e3, 43200e3, 86400e3];

// waited says how long a task of the critical path waited, and for what.
const waited = (l) => `${span(l.wait)} ${l.queue ? `in queue ${l.queue}${l.threads === undefined ? '' : ` (${plural(l.threads, 'thread')})`}` : 'of waiting'}`;

export async function mount(element, { plan, api, open, onEvent }) {
  await styled();
  const view = new Timeline(element, plan, api, open);
  const off = onEvent((change) => { view.following.change(change); view.refresh(); });
  try {
    await view.load();
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    view.fail(e);
  }
  return { destroy: () => { off?.(); view.destroy(); }, reload: () => view.refresh(), view };
}

class Timeline {
  constructor(element, plan, api, open) {
    Object.assign(this, { plan, api, openTask: open });
    this.across = true;
    this.chosen = this.hovered = -1;
    this.only = null;
    this.fitted = true; // all is shown, and is to be while it grows
    this.begun = false; // it was shown from its first row
    this.pointed = -1; // where the pointer is, in pixels from the left
    this.bars = [];
    this.rows = [];
    this.asked = { open: '', from: 0 };
    this.note = h('p', { class: 'draw-note' });
    this.said = h('p', { class: 'draw-said', role: 'status', 'aria-live': 'polite' });
    this.marked = h('button', { type: 'button', 'aria-pressed': 'true', onclick: () => this.toggle() }, 'Critical path');
    this.close = h('button', { type: 'button', hidden: true, onclick: () => this.show('') }, 'Close the group');
    this.legend = legend((state) => { this.only = state; this.surface.redraw(); }, false);
    this.stage = h('div', { class: 'stage' });
    this.pathSum = h('summary', {}, 'The critical path as text');
    this.pathList = h('ol');
    this.rowList = h('ol');
    this.rowsText = h('details', {}, h('summary', {}, 'The time line as text'), this.rowList);
    this.rowsText.addEventListener('toggle', () => this.write());
    const bar = h('div', { class: 'draw-bar' }, this.legend.element, h('span', { class: 'grow' }), this.close, this.marked);
    this.element = h('div', { class: 'drawing timeline' }, this.note, bar, this.stage,
      h('p', { class: 'draw-keys' }, 'Drag or scroll to move, Ctrl and scroll to enlarge. Keys: arrows, + and −, f for all; Enter chooses a task, then arrows go to others, c along the critical path, Enter opens it, and o opens its row where that is of several.'),
      h('details', {}, this.pathSum, this.pathList), this.rowsText, this.said);
    element.replaceChildren(this.element);
    this.surface = new Surface(this.stage, 'Time line of the plan. Enter chooses a task, arrows go to others.', this);
    bar.insertBefore(tools(this.surface), this.close);
    this.tip = h('div', { class: 'draw-tip', hidden: true });
    this.stage.append(this.tip);
    this.legend.paint(this.surface.colours);
    this.refresh = refresher(() => this.load());
    this.following = follow(plan, this.refresh);
    this.clock = setInterval(() => { if (this.t && !this.t.ended && !document.hidden) this.grow(); }, 1000);
  }

  destroy() {
    this.gone = true;
    clearInterval(this.clock);
    clearTimeout(this.sooner);
    this.following.end();
    this.refresh.end();
    this.surface.destroy();
    this.element.remove();
  }

  fail(e) {
    this.stage.hidden = true;
    this.note.textContent = `The time line cannot be shown: ${e.message}`;
  }

  // show opens the row with the key, or closes the one that is open.
  async show(open, from = 0) {
    const was = this.asked;
    this.asked = { open, from };
    try {
      await this.load();
    } catch (e) {
      this.asked = was;
      this.note.textContent = `That could not be shown: ${e.message}`;
    }
  }

  async load() {
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(this.asked)) if (value) q.set(name, value);
    const turn = this.turn = (this.turn || 0) + 1;
    const t = await this.api.get(`/plans/${this.plan.id}/timeline${q.size ? `?${q}` : ''}`);
    if (this.gone || turn !== this.turn) return;
    const kept = this.bars[this.chosen]?.id;
    this.t = t;
    this.behind = performance.now() - t.now;
    this.breaks = t.breaks || [];
    this.rows = t.rows.map((name, i) => ({ name, size: t.size[i], key: t.keys[i], from: t.row_from?.[i] || 0, state: STATES[t.row_state[i]], bars: [], dense: null, most: 0 }));
    // The axis leaves out the breaks: bars and links are where they are on it, and began is when they did.
    this.bars = t.row.map((row, i) => ({ row, began: t.from[i], from: this.on(t.from[i]), to: t.to[i] < 0 ? -1 : this.on(t.to[i]), state: STATES[t.state[i]], id: t.ids[i], name: titled(t.names[i], t.item_labels?.[i]), link: null }));
    const byID = new Map();
    for (const p of t.progress || []) this.bars[p.node].progress = p;
    clearTimeout(this.sooner);
    if (t.progress) this.sooner = setTimeout(this.refresh, PACE); // no event tells of it
    for (const b of this.bars) {
      this.rows[b.row].bars.push(b);
      if (!this.rows[b.row].key) this.rows[b.row].name = b.name; // an item's has what it is for
      byID.set(b.id, b);
    }
    differs(this.rows.map((r) => r.name)).forEach((at, i) => { this.rows[i].differs = at; });
    this.longest = 0;
    this.close.hidden = !this.asked.open;
    for (const [row, first, ...values] of t.dense || []) {
      this.rows[row].dense = { first, values };
      this.rows[row].most = Math.max(...values, 0);
    }
    for (const l of t.path) {
      const began = l.from;
      Object.assign(l, { from: this.on(l.from), to: this.on(l.to) });
      if (l.row < 0) continue;
      let b = byID.get(l.id);
      if (!b) { // of a row of many, in which it is not among the longest
        b = { row: l.row, began, from: l.from, to: l.to, state: STATES[l.state], id: l.id, name: titled(l.name, l.item_label) };
        this.bars.push(b);
        this.rows[l.row].bars.push(b);
      }
      b.link = l;
    }
    this.chosen = kept ? this.bars.findIndex((b) => b.id === kept) : -1;
    this.hovered = -1;
    this.about();
    this.surface.tall(AXIS + this.rows.length * ROW + 12);
    if (!this.begun && this.rows.length) {
      this.surface.view.y = -AXIS;
      this.begun = true;
    }
    if (this.fitted) this.fit(true);
    this.surface.clamp();
    this.surface.paint();
    this.write();
  }

  about() {
    const t = this.t, counts = new Array(STATES.length).fill(0);
    for (const b of this.bars) if (b.state) counts[STATES.indexOf(b.state)]++;
    this.legend.set(counts);
    const parts = [];
    if (!this.rows.length) parts.push(t.ended ? 'Nothing of it was started.' : 'Nothing of it is started yet.');
    else {
      parts.push(`${t.ended ? 'It took' : 'It has run for'} ${span(this.end() - this.on(t.retried || 0))}${t.retried ? ' since its retry' : ''}.`);
      if (t.tasks > t.started) parts.push(`${number(t.started)} of ${plural(t.tasks, 'task')} ${t.started === 1 ? 'was' : 'were'} started.`);
      const several = this.rows.filter((r) => r.key), items = several.every((r) => r.key.startsWith('of:'));
      if (several.length) parts.push(`${items ? 'A foreach has one row' : 'Tasks with names alike share a row'}: how many ran at a time, the longest of them and those that failed. Click it to see each.`);
    }
    this.note.textContent = parts.join(' ');
    this.marked.hidden = !t.path.length;
    const run = t.path.reduce((n, l) => n + l.to - l.from, 0), wait = t.path.reduce((n, l) => n + l.wait, 0);
    this.pathSum.textContent = `The critical path as text: ${plural(t.path.length, 'task')}, ${span(run)} of work and ${span(wait)} of waiting`;
    this.pathSum.parentElement.hidden = !t.path.length;
    if (!this.pathList.contains(document.activeElement)) this.pathList.replaceChildren(...t.path.slice(0, LISTED).map((l) => h('li', {},
      h('button', { type: 'button', onclick: () => this.openTask(l.id) }, titled(l.name, l.item_label)), ` ran ${span(l.to - l.from)}${l.wait >= 1 ? `, after ${waited(l)}` : ''}`)),
      ...(t.path.length > LISTED || t.path_left ? [h('li', {}, `and ${number(t.path.length - Math.min(t.path.length, LISTED) + (t.path_left || 0))} more`)] : []));
  }

  write() {
    if (!this.rowsText.open || this.rowList.contains(document.activeElement)) return; // who is in it would be thrown out
    this.rowList.replaceChildren(...this.rows.slice(0, LISTED).map((r) => {
      const b = r.bars[0];
      return r.key ? h('li', {}, h('button', { type: 'button', 'aria-label': `Open ${r.name}`, onclick: () => this.enter(r) }, r.name), `: ${r.state ? `${word(r.state)}, ` : ''}${plural(r.size, r.state ? 'item' : 'task')}, up to ${Math.round(r.most * 10) / 10} at a time`)
        : h('li', {}, h('button', { type: 'button', onclick: () => this.openTask(b.id) }, r.name), ` ${this.words(b)}`);
    }), ...(this.rows.length > LISTED ? [h('li', {}, `and ${number(this.rows.length - LISTED)} more rows`)] : []));
  }

  toggle() {
    this.marked.setAttribute('aria-pressed', String(this.marked.getAttribute('aria-pressed') !== 'true'));
    this.surface.redraw();
  }

  end() { return Math.max(this.on(this.t.ended ? this.t.end : performance.now() - this.behind), 1); }
  // on is where an instant is on the axis, and at the instant of a place on it.
  on(at) { return this.breaks.reduce((x, [from, to]) => x - Math.max(0, Math.min(at, to) - from), at); }
  at(x) { return this.breaks.reduce((at, [from, to]) => (at > from ? at + to - from : at), x); }
  until(b) { return b.to < 0 ? this.end() : b.to; }

  grow() {
    if (this.fitted) this.fit(true);
    this.surface.redraw();
  }

  // What the surface asks.

  gutter() {
    const width = this.surface.size.width, c = this.surface.c;
    if (!this.longest) {
      c.font = `12.5px ${this.surface.colours.font}`;
      this.longest = Math.max(60, ...this.rows.slice(0, LISTED).map((r) => c.measureText(r.name).width + (r.key ? c.measureText(` ×${number(r.size)}`).width : 0)));
    }
    return Math.min(this.longest + 38, Math.max(Math.min(130, width * 0.36), Math.min(width * 0.24, 300)));
  }

  margins() { return { left: this.gutter() + 6, right: 26, top: AXIS, bottom: 10 }; }
  world() { return { width: this.t ? this.end() : 1, height: this.rows.length * ROW }; }

  limits() {
    const m = this.margins(), least = Math.max(this.surface.size.width - m.left - m.right, 50) / this.world().width;
    return { least, most: Math.max(20, 8 * least) }; // a plan of milliseconds is enlarged, too
  }

  resized() { if (this.t && this.fitted) this.fit(true); }
  recoloured(p) { this.legend.paint(p); }
  moved() {
    this.tip.hidden = true;
    this.fitted = this.surface.view.kx <= this.limits().least * 1.001;
  }

  fit(now) {
    const k = this.limits().least, to = { x: -this.margins().left / k, kx: k };
    this.fitted = true;
    if (now === true) {
      Object.assign(this.surface.view, to, { ky: 1 });
      this.surface.clamp();
      this.surface.redraw();
    } else this.surface.glide({ ...to, y: -AXIS });
  }

  hit(px, py) {
    const v = this.surface.view, row = this.rows[Math.floor((v.y + py) / ROW)];
    if (!row || py < AXIS) return -1;
    if (px < this.gutter()) return row.key ? -1 : this.bars.indexOf(row.bars[0]);
    let best = null, least = 6;
    for (const b of row.bars) {
      const from = (b.from - v.x) * v.kx, to = Math.max((this.until(b) - v.x) * v.kx, from + 2);
      const d = Math.max(from - px, 0, px - to);
      if (d < least || (d === least && b.link)) { least = d; best = b; }
    }
    return best ? this.bars.indexOf(best) : -1;
  }

  press(px, py) {
    const i = this.hit(px, py), row = py < AXIS ? null : this.rows[Math.floor((this.surface.view.y + py) / ROW)];
    if (i >= 0) this.openTask(this.bars[i].id);
    else if (row?.key) this.enter(row);
  }

  // enter opens a row of several, of whose parts one is known where the group is open already.
  enter(row) {
    this.said.textContent = `Opening ${row.name}`;
    this.show(row.key, row.from);
  }

  hover(px, py) {
    const i = px === null ? -1 : this.hit(px, py);
    const row = px === null || py < AXIS ? null : this.rows[Math.floor((this.surface.view.y + py) / ROW)];
    this.surface.canvas.classList.toggle('over', i >= 0 || Boolean(row?.key));
    if (i >= 0) this.point(this.bars[i].name, this.words(this.bars[i]), px, py);
    else if (row?.dense) this.point(row.name, this.manyWords(row, px), px, py);
    else this.tip.hidden = true;
    this.hovered = i;
    this.pointed = px === null ? -1 : px;
    this.surface.redraw();
  }

  words(b) {
    const parts = [word(b.state), far(b.progress), b.to < 0 ? `for ${span(this.end() - b.from)}` : `ran ${span(b.to - b.from)}`, `began ${span(b.began)} after the plan, at ${new Date(this.t.begin + b.began).toLocaleTimeString()}`];
    if (b.link) parts.push(b.link.wait >= 1 ? `on the critical path, after ${waited(b.link)}` : 'on the critical path');
    return parts.filter(Boolean).join('; ');
  }

  manyWords(row, px) {
    const v = this.surface.view, at = v.x + px / v.kx, bin = Math.floor(at / this.end() * this.t.bins), n = row.dense.values[bin - row.dense.first];
    return `${row.state ? `${word(row.state)}; ` : ''}${plural(row.size, row.state ? 'item' : 'task')}; up to ${Math.round(row.most * 10) / 10} ran at a time${n === undefined || px < this.gutter() ? '' : `, here ${Math.round(n * 10) / 10}`}; click to open it`;
  }

  point(title, words, px, py) {
    this.tip.replaceChildren(h('b', {}, title), ...words.split('; ').map((w) => h('span', {}, w)));
    this.tip.hidden = false;
    const { width, height } = this.surface.size, w = this.tip.offsetWidth, t = this.tip.offsetHeight;
    this.tip.style.left = `${Math.max(4, Math.min(px + 14, width - w - 4))}px`;
    this.tip.style.top = `${py + 18 + t > height ? Math.max(4, py - t - 12) : py + 18}px`;
  }

  choose(i) {
    this.chosen = i;
    const b = this.bars[i];
    this.said.textContent = b ? `${b.name}, ${this.words(b)}` : '';
    if (b) this.surface.reveal(Math.max(b.from, 0), b.row * ROW, Math.min(this.until(b) - b.from, (this.surface.size.width * 0.5) / this.surface.view.kx), ROW);
    this.surface.redraw();
  }

  key(ev) {
    const b = this.bars[this.chosen];
    if (ev.key === 'Enter' || ev.key === ' ') {
      if (b) this.openTask(b.id);
      else {
        const first = Math.max(0, Math.floor((this.surface.view.y + AXIS) / ROW)), row = this.rows.slice(first).find((r) => r.bars.length);
        if (row) this.choose(this.bars.indexOf(row.bars[0]));
      }
      return true;
    }
    if (ev.key === 'c' && this.t?.path.length) {
      const path = this.t.path.map((l) => this.bars.find((x) => x.link === l)).filter(Boolean);
      this.choose(this.bars.indexOf(path[(path.indexOf(b) + 1) % path.length]));
      return true;
    }
    if (ev.key === 'o' && this.rows[b?.row]?.key) {
      this.enter(this.rows[b.row]);
      return true;
    }
    if (!b || ev.shiftKey) return false;
    if (ev.key === 'Escape') {
      this.choose(-1);
      return true;
    }
    const row = this.rows[b.row], at = row.bars.indexOf(b);
    if (ev.key === 'ArrowUp' || ev.key === 'ArrowDown') {
      const by = ev.key === 'ArrowUp' ? -1 : 1;
      for (let r = b.row + by; this.rows[r]; r += by) {
        if (!this.rows[r].bars.length) continue;
        const near = this.rows[r].bars.reduce((best, x) => (Math.abs(x.from - b.from) < Math.abs(best.from - b.from) ? x : best));
        this.choose(this.bars.indexOf(near));
        break;
      }
      return true;
    }
    if ((ev.key === 'ArrowLeft' || ev.key === 'ArrowRight') && row.bars.length > 1) {
      const next = row.bars[at + (ev.key === 'ArrowLeft' ? -1 : 1)];
      if (next) this.choose(this.bars.indexOf(next));
      return true;
    }
    return false;
  }

  // Drawing.

  draw(c, { width, height }) {
    if (!this.t) return;
    const v = this.surface.view, p = this.surface.colours, left = this.gutter(), x = (t) => (t - v.x) * v.kx;
    const first = Math.max(0, Math.floor((v.y + AXIS) / ROW)), last = Math.min(this.rows.length - 1, Math.floor((v.y + height) / ROW));
    this.ticks(c, width, height, p, left);
    const path = this.marked.getAttribute('aria-pressed') === 'true';
    c.save();
    c.beginPath();
    c.rect(left, AXIS, width - left, height - AXIS);
    c.clip();
    for (let r = first; r <= last; r++) this.row(c, r, p, path, left, width);
    if (path) this.path(c, p, left);
    if (!this.t.ended) {
      const now = Math.round(x(this.end())) + 0.5;
      c.strokeStyle = p.focus;
      c.lineWidth = 1.5;
      c.setLineDash([4, 3]);
      c.beginPath();
      c.moveTo(now, AXIS);
      c.lineTo(now, height);
      c.stroke();
      c.setLineDash([]);
    }
    const b = this.bars[this.chosen];
    if (b) {
      c.strokeStyle = p.focus;
      c.lineWidth = 2.5;
      const from = Math.max(x(b.from), left - 8);
      c.strokeRect(from - 3, b.row * ROW - v.y + 2, Math.max(Math.min(x(this.until(b)), width + 8) - from, 2) + 6, ROW - 4);
    }
    c.restore();
    if (this.pointed >= left) this.pointer(c, width, height, p, left);
    this.names(c, first, last, p, left, height);
  }

  // pointer is a line where the pointer is, with the time there at its top.
  pointer(c, width, height, p, left) {
    const v = this.surface.view, t = v.x + this.pointed / v.kx;
    if (t < 0 || t > this.end()) return;
    const x = Math.round(this.pointed) + 0.5, text = `${span(this.at(t))}, ${new Date(this.t.begin + this.at(t)).toLocaleTimeString()}`;
    c.strokeStyle = p.soft;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(x, AXIS);
    c.lineTo(x, height);
    c.stroke();
    c.font = `12px ${p.font}`;
    const room = c.measureText(text).width + 12, at = Math.max(left + 1, Math.min(x - room / 2, width - room - 2));
    c.fillStyle = p.text;
    c.beginPath();
    c.roundRect(at, 4, room, AXIS - 8, 4);
    c.fill();
    c.fillStyle = p.bg;
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    c.fillText(text, at + 6, AXIS / 2 + 0.5);
  }

  ticks(c, width, height, p, left) {
    const v = this.surface.view, step = STEPS.find((s) => s * v.kx >= 84) || Math.ceil(84 / v.kx / 86400e3) * 86400e3;
    c.font = `12px ${p.font}`;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    const end = this.end();
    const begins = [0, ...this.breaks.map(([from]) => this.on(from))]; // after a break the count begins anew
    begins.forEach((begin, i) => {
      const over = Math.min(begins[i + 1] ?? end, end);
      for (let t = begin + Math.max(i ? step : 0, Math.ceil((v.x + left / v.kx - begin) / step) * step); t <= over; t += step) {
        const at = Math.round((t - v.x) * v.kx) + 0.5;
        if (at > width) break;
        c.strokeStyle = p.line;
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(at, AXIS - 8);
        c.lineTo(at, height);
        c.stroke();
        c.fillStyle = p.soft;
        const label = `${i ? '+' : ''}${span(t - begin)}`, until = i + 1 < begins.length ? (over - v.x) * v.kx - 44 : width;
        if (at + 4 + c.measureText(label).width < until) c.fillText(label, at + 4, AXIS / 2);
      }
    });
    for (const [from, to] of this.breaks) this.gap(c, Math.round((this.on(from) - v.x) * v.kx) + 0.5, height, p, `${span(to - from)} later`);
    c.strokeStyle = p.strong;
    c.beginPath();
    c.moveTo(left, AXIS - 0.5);
    c.lineTo(width, AXIS - 0.5);
    c.stroke();
  }

  // gap marks where the axis leaves out a break.
  gap(c, x, height, p, text) {
    c.strokeStyle = c.fillStyle = p.soft;
    c.lineWidth = 1.5;
    for (const side of [-2.5, 2.5]) {
      c.beginPath();
      for (let y = AXIS, i = 0; y <= height; y += 8, i++) c.lineTo(x + side + (i % 2 ? 2 : -2), y);
      c.stroke();
    }
    const room = c.measureText(text).width + 10;
    c.fillStyle = p.bg;
    c.fillRect(x - room / 2, 2, room, AXIS - 6);
    c.fillStyle = p.text;
    c.textAlign = 'center';
    c.fillText(text, x, AXIS / 2);
    c.textAlign = 'left';
  }

  row(c, r, p, path, left, width) {
    const v = this.surface.view, row = this.rows[r], top = r * ROW - v.y, x = (t) => (t - v.x) * v.kx;
    if (row.dense) this.density(c, row, top, p);
    const y = top + (row.dense ? ROW - 9 : (ROW - BAR) / 2), t = row.dense ? 7 : BAR;
    for (const b of row.bars.toSorted((a, b) => BROKEN.includes(a.state) - BROKEN.includes(b.state))) { // what failed is on top
      const from = Math.max(x(b.from), left - 20), to = Math.min(Math.max(x(this.until(b)), x(b.from) + 2), width + 20);
      if (to < left || from > width) { // where to look for it
        if (!row.dense) {
          const at = to < left ? left + 6 : width - 6, way = to < left ? 5 : -5;
          c.fillStyle = p.strong;
          c.beginPath();
          c.moveTo(at, y + t / 2);
          c.lineTo(at + way, y + t / 2 - 4);
          c.lineTo(at + way, y + t / 2 + 4);
          c.fill();
        }
        continue;
      }
      c.globalAlpha = this.only && b.state !== this.only ? 0.2 : 1;
      c.fillStyle = p.states[b.state] || p.soft;
      c.beginPath();
      c.roundRect(from, y, to - from, t, Math.min(3, (to - from) / 2));
      c.fill();
      if (b.state === 'running' && !row.dense) { // open at its end
        c.fillStyle = p.bg;
        for (let k = 0; k < 3; k++) c.fillRect(to - 4 - k * 5, y, 2, t);
      }
      if (!row.dense && to - from < width - left - 90) {
        c.fillStyle = p.soft;
        c.font = `11.5px ${p.font}`;
        c.textBaseline = 'middle';
        c.textAlign = 'left';
        const label = span(this.until(b) - b.from) + (b.progress ? `, ${far({ fraction: b.progress.fraction })}` : ''), room = c.measureText(label).width + 10;
        if (to + room < width) c.fillText(label, to + 6, y + t / 2 + 0.5);
        else if (to - from > room) { // within
          c.fillStyle = p.bg;
          c.fillText(label, Math.max(from, left) + 6, y + t / 2 + 0.5);
        }
      }
      if (path && b.link) {
        c.strokeStyle = p.text;
        c.lineWidth = 2;
        c.strokeRect(from - 1, y - 1, Math.max(to - from, 2) + 2, t + 2);
      }
    }
    c.globalAlpha = 1;
  }

  density(c, row, top, p) {
    const v = this.surface.view, bin = this.end() / this.t.bins, tall = ROW - 12, base = top + ROW - 10;
    c.globalAlpha = 0.45;
    c.fillStyle = p.soft;
    c.beginPath();
    row.dense.values.forEach((n, i) => {
      if (n <= 0) return;
      const from = ((row.dense.first + i) * bin - v.x) * v.kx, t = Math.max(tall * n / row.most, 1);
      c.rect(from, base - t, Math.max(bin * v.kx + 0.3, 1), t);
    });
    c.fill();
    c.globalAlpha = 1;
  }

  // path joins the links of the critical path: from the end of one to the start of the next, which is what it waited.
  path(c, p) {
    const v = this.surface.view, x = (t) => (t - v.x) * v.kx, y = (r) => r * ROW + ROW / 2 - v.y;
    c.strokeStyle = p.text;
    c.lineWidth = 1.5;
    c.globalAlpha = 0.8;
    let before = null;
    for (const l of this.t.path) {
      if (before && before.row >= 0 && l.row >= 0 && !this.t.path_left) {
        const x0 = x(before.to), y0 = y(before.row), x1 = x(l.from), y1 = y(l.row), down = y1 > y0 ? 1 : -1;
        if (y0 !== y1) {
          c.beginPath();
          c.moveTo(x0, y0 + down * BAR / 2);
          c.lineTo(x0, y1);
          c.lineTo(x1, y1);
          c.stroke();
        } else if (x1 > x0) {
          c.beginPath();
          c.moveTo(x0, y0);
          c.lineTo(x1, y1);
          c.stroke();
        }
      }
      before = l;
    }
    c.globalAlpha = 1;
  }

  // names are the column on the left.
  names(c, first, last, p, left, height) {
    const v = this.surface.view;
    c.fillStyle = p.bg;
    c.fillRect(0, 0, left, height);
    c.strokeStyle = p.strong;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(left - 0.5, 0);
    c.lineTo(left - 0.5, height);
    c.stroke();
    c.save();
    c.beginPath();
    c.rect(0, AXIS, left - 4, height - AXIS);
    c.clip();
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    for (let r = first; r <= last; r++) {
      const row = this.rows[r], y = r * ROW - v.y + ROW / 2;
      const state = row.key ? row.state : row.bars[0]?.state;
      if (state) mark(c, state, 14, y, 6.5, p.states[state] || p.soft, p.bg);
      c.font = `12.5px ${p.font}`;
      let room = left - 34;
      if (row.key) {
        const count = `×${number(row.size)}`;
        c.fillStyle = p.soft;
        const size = c.measureText(count).width;
        if (room - size > 60) { // else the name alone: the pointer, and the text below, tell the number
          c.fillText(count, left - size - 10, y + 0.5);
          room -= size + 6;
        }
      }
      c.fillStyle = p.text;
      c.fillText(this.cut(c, row, room), 26, y + 0.5);
    }
    c.restore();
  }

  cut(c, row, room) {
    if (row.room === room) return row.label;
    const head = /^.*?\[\d+\](?= )/.exec(row.name)?.[0] || ''; // of an item, by which it is told from the others
    let text = row.name;
    if (c.measureText(text).width > room && head && c.measureText(`${head}…`).width <= room) {
      let n = text.length - head.length;
      do text = `${head}…${--n > 0 ? row.name.slice(-n) : ''}`;
      while (n > 0 && c.measureText(text).width > room);
    } else text = shorten(c, text, room, row.differs);
    row.room = room;
    row.label = text;
    return text;
  }
}
