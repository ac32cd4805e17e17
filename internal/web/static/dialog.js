// Dialogs: the browser's own element, which keeps the focus inside and gives it back.
import { h } from './dom.js';

// ask shows a dialog and returns whether it was agreed to; 'other' where its other button was pressed, if it has one. submit, if it is given, is called first; what it throws is shown, and the dialog stays.
export function ask({ title, body, ok = 'OK', cancel = 'Cancel', other, danger = false, wide = false, submit }) {
  return new Promise((resolve) => {
    const problem = h('p', { class: 'problem', role: 'alert' });
    const yes = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, ok);
    const form = h('form', { method: 'dialog', onsubmit: async (e) => {
      e.preventDefault();
      if (!submit) return end(true);
      yes.disabled = true;
      try {
        await submit();
        end(true);
      } catch (p) {
        problem.textContent = p.detail || p.message;
      }
      yes.disabled = false;
    } }, h('h2', {}, title), typeof body === 'string' ? h('p', {}, body) : body, problem,
    h('div', { class: 'buttons' }, cancel && h('button', { type: 'button', onclick: () => end(false) }, cancel), other && h('button', { type: 'button', onclick: () => end('other') }, other), yes));
    const d = h('dialog', { class: wide ? 'wider' : null, oncancel: () => end(false), 'aria-label': title }, form);
    function end(agreed) {
      d.close();
      d.remove();
      resolve(agreed);
    }
    d.addEventListener('click', (e) => { if (e.target === d) end(false); });
    document.body.append(d);
    d.showModal();
    if (!form.querySelector('input, textarea, select')) yes.focus({ preventScroll: true });
    d.scrollTop = 0; // it is read from its top, also where the focus is at its end
  });
}

// action is a button that does f, and says in a dialog what went wrong.
export function action(label, f, { class: kind, title } = {}) {
  const b = h('button', { type: 'button', class: kind, title }, label);
  b.addEventListener('click', async () => {
    b.disabled = true;
    try {
      await f();
    } catch (e) {
      if (e.name !== 'AbortError') await ask({ title: e.title || 'That did not work', body: e.detail || e.message, ok: 'Close', cancel: null });
    }
    b.disabled = false;
  });
  return b;
}
