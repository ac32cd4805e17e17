// The params of a plan that is to be submitted: a field for each that a check found in the file, a list where it has choices, and rows for any other.
import { h, fill, put } from './dom.js';
import { textOf } from './again.js';

// paramFields returns {element, given, declare, clear, first, kept}; changed is called with each change. given() are NAME=VALUE, of what was typed. kept() is
// what may be kept: the fields, and values of those that are not secret. What is typed into a row may be a secret, and is kept nowhere.
export function paramFields(changed) {
  const hint = h('p', { class: 'muted' });
  const declared = h('div', { class: 'declared' });
  const rows = h('div', { class: 'params' });
  let fields = [], known = [];
  const element = h('section', { 'aria-label': 'Params' }, h('h2', {}, 'Params'), hint, declared, rows,
    h('button', { type: 'button', class: 'quiet', onclick: () => add().focus() }, 'Add a param'));

  // add makes a row, whose name is not known from the file, or not yet.
  function add(name = '', value = '') {
    const n = h('input', { 'aria-label': 'Name of a param', placeholder: 'name', value: name, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', oninput: changed });
    const row = h('div', { class: 'row' }, n, '=', h('input', { 'aria-label': 'Its value', placeholder: 'value', value, spellcheck: 'false', autocomplete: 'off', class: 'grow', oninput: changed }),
      h('button', { type: 'button', class: 'quiet', 'aria-label': 'Leave this param out', onclick: () => { row.remove(); changed(); } }, '✕'));
    rows.append(row);
    return n;
  }

  const typedRows = () => [...rows.children].map((row) => [row, ...[...row.querySelectorAll('input')].map((i) => i.value)]).map(([row, name, value]) => ({ row, name: name.trim(), value }));

  // declare shows a field for each param of the file. What was typed for one stays.
  function declare(list, values = {}) {
    const had = new Map([...Object.entries(values), ...fields.map((f) => [f.name, f.input.value])]);
    known = list;
    for (const r of typedRows()) {
      if (!list.some((p) => p.name === r.name)) continue;
      had.set(r.name, r.value);
      r.row.remove();
    }
    fields = list.map((p) => field(p, had.get(p.name) || '', changed));
    fill(declared, fields.map((f) => f.element));
    put(hint, list.length ? 'A field that is left empty stays as the file has it.' : 'The file has none.');
  }

  function clear() {
    fields = [];
    known = [];
    fill(declared);
    put(hint, 'A check shows those that the file has.');
  }
  clear();
  return {
    element, declare, clear,
    kept: () => ({ declared: known, values: Object.fromEntries(fields.filter((f) => !f.secret && f.input.value !== '').map((f) => [f.name, f.input.value])) }),
    given: () => [...fields.filter((f) => f.input.value !== '').map((f) => `${f.name}=${f.input.value}`), ...typedRows().filter((r) => r.name).map((r) => `${r.name}=${r.value}`)],
    first: () => fields.find((f) => f.missing && f.input.value === '')?.input,
  };
}

function field(p, value, changed) {
  const id = `param-${p.name}`, noteID = `${id}-note`;
  const asText = textOf(p.default);
  const more = { id, oninput: changed, 'aria-describedby': noteID, 'aria-required': p.missing ? 'true' : null };
  const choices = (p.choices || (typeof p.default === 'boolean' ? [true, false] : [])).map(textOf);
  const input = choices.length
    ? h('select', { ...more, onchange: changed }, h('option', { value: '' }, p.default === undefined ? 'Choose…' : `${asText}, as in the file`),
      choices.filter((c) => c !== asText).map((c) => h('option', { value: c }, c)))
    : h('input', { ...more, type: p.secret ? 'password' : 'text', placeholder: asText, spellcheck: 'false', autocapitalize: 'off', autocomplete: p.secret ? 'new-password' : 'off' });
  input.value = choices.length && (value === asText || !choices.includes(value)) ? '' : value;
  const notes = [p.secret && 'secret: it is shown nowhere', p.missing && 'it has to be given'].filter(Boolean).join('; ');
  return {
    name: p.name, missing: p.missing, secret: p.secret, input,
    element: h('div', { class: 'param' }, h('label', { for: id }, p.name), input, h('span', { id: noteID, class: 'muted' }, p.about, p.about && notes && ' · ', h('span', { class: p.missing ? 's-failed' : null }, notes))),
  };
}
