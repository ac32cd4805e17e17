// Questions that wait for a person: of one task, and of all plans.
import { h, fill, href, ago, number, instant } from './dom.js';
import * as api from './api.js';
import { action } from './dialog.js';

// awaits reports whether a task waits for an answer.
export const awaits = (t) => t.state === 'held' && t.reason === 'approval';

// question has the question of a task, a field for a note, and both answers. An answer names the question that is shown, so that an old page answers nothing new.
export function question(t, then) {
  const note = h('input', { type: 'text', maxlength: '1000', placeholder: 'A note, if you like', 'aria-label': 'A note for those who read the answer', autocomplete: 'off' });
  const answer = (approve) => async () => {
    await api.post(`/tasks/${t.id}/approval`, { approve, note: note.value.trim(), asked: t.started });
    await then();
  };
  return [h('h2', {}, t.detail || 'So?'),
    h('div', { class: 'row needs-approve' }, note, action('Approve', answer(true), { class: 'primary' }), action('Reject', answer(false), { class: 'danger' }))];
}

// inbox lists the tasks that wait for somebody, above the plans.
export function inbox(page) {
  const section = h('section', { class: 'inbox', hidden: true, 'aria-label': 'Waiting for you' });
  const titles = new Map(); // of plans, by id
  async function read() {
    let tasks = [];
    try {
      tasks = (await api.get('/approvals', null, { signal: page.signal })).tasks;
      for (const id of new Set(tasks.map((t) => t.plan).filter((id) => id && !titles.has(id)))) {
        const p = await api.get(`/plans/${id}`, null, { signal: page.signal });
        titles.set(id, `${p.name} #${p.run}`);
      }
    } catch {
      return; // the page is left, or the notice says it
    }
    if (section.contains(document.activeElement) && tasks.length > 0) return; // who moves among them by keys goes on
    section.hidden = tasks.length === 0;
    fill(section, h('h2', {}, 'Waiting for you ', h('span', { class: 'n' }, `(${number(tasks.length)})`)),
      h('ul', { class: 'links' }, tasks.map((t) => h('li', {}, h('a', { href: href('tasks', t.id), 'data-row': '' },
        h('strong', {}, t.detail || t.name), h('span', { class: 'muted' }, [titles.get(t.plan), t.name].filter(Boolean).join(' · ')),
        h('time', { class: 'muted', datetime: t.started, title: instant(t.started) }, ago(t.started)))))));
  }
  read();
  page.every(5000, read);
  return section;
}
