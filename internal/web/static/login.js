// The login page.
import { h, fill, put } from './dom.js';
import * as session from './session.js';

export default async function login({ main, query, page }) {
  page.title('Log in');
  const problem = h('p', { class: 'problem', role: 'alert' });
  const name = h('input', { name: 'user', autocomplete: 'username', required: true, autocapitalize: 'off', spellcheck: 'false' });
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Log in');
  fill(main, h('form', { class: 'login', onsubmit: async (e) => {
    e.preventDefault();
    button.disabled = true;
    try {
      const wrong = await session.login(name.value, password.value);
      if (!wrong) { location.assign(local(query.get('next'))); return; }
      put(problem, wrong);
      password.select();
    } catch {
      put(problem, 'The server does not answer. Look whether sluice serve still runs.');
    }
    button.disabled = false;
  } }, h('h1', {}, 'Log in'), h('p', { class: 'muted' }, `To see the plans of ${location.host}. Who has no name and password yet asks who runs this server.`), h('label', {}, 'Name', name), h('label', {}, 'Password', password), problem, button));
  name.focus();
}

// local is where to go after the login: a page of ours, whatever a link says.
export function local(next) {
  try {
    const url = new URL(next || '/ui/', location.origin);
    if (url.origin === location.origin && url.pathname.startsWith('/ui/') && url.pathname !== '/ui/login') return url.pathname + url.search;
  } catch { /* it is no address */ }
  return '/ui/';
}
