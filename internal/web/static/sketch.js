// The graph of a plan file that is being written, beside its text. A file with a mistake keeps the graph that it had.
import { h, fill, put } from './dom.js';
import { send } from './api.js';
import { narrow } from './outline.js';

const LONGEST = 200000; // characters of a file that is drawn as one types

// sketch returns {element, draw(text, signal), destroy}. goTo(line, column) shows a place of the text.
export function sketch(goTo) {
  const stage = h('div', {}), said = h('p', { class: 'muted' }), element = h('section', { class: 'sketch', hidden: true, 'aria-label': 'Graph of the file' }, said, stage);
  let view = null, graph = null, count = 0, asked = 0, text = '';

  // open goes to the line of a task.
  function open(name) {
    const plain = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const line = text.split('\n').findIndex((l) => new RegExp(`^\\s+["']?${plain}["']?\\s*:`).test(l));
    if (line >= 0) goTo(line + 1, 1);
  }
  async function draw(now, signal) {
    text = now;
    const mine = ++asked;
    if (!text.trim() || text.length > LONGEST || narrow()) {
      element.hidden = true;
      return;
    }
    let found;
    try {
      found = await send('POST', '/plans/sketch', text, { type: 'application/yaml', signal });
    } catch {
      return; // a check, or the submission, says it
    }
    if (mine !== asked) return;
    const [first] = found.errors;
    put(said, first ? `${first.line > 0 ? `${first.line}:${first.column || 1} ` : ''}${first.message}` : '');
    said.hidden = !first;
    element.classList.toggle('old', Boolean(first));
    element.hidden = !found.graph && !graph;
    if (!found.graph) return;
    graph = { ...found.graph, layout: `${++count}` };
    if (view) { await view.load(); return; }
    const { mount } = await import('/ui/graph.js');
    if (signal.aborted || view) return;
    ({ view } = await mount(stage, { plan: { id: '', state: 'succeeded' }, api: { get: async () => graph }, open, onEvent: () => null }));
  }
  return { element, draw, destroy: () => { view?.destroy(); fill(stage); } };
}
