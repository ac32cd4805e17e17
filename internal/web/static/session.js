// Who looks at the pages. This is the one place that adds the session's token to requests that change something, and that sends who is not
// logged in to the login page. On a server without users everybody may do everything, and none of it shows.

let session = { name: '', by: '', scopes: [] };

// begin learns from the server who this is. What they may not do is not offered: elements of class needs-operate, needs-approve and needs-submit.
export async function begin() {
  try {
    const r = await fetch('/api/v1/session', { headers: { Accept: 'application/json' }, cache: 'no-store' });
    if (r.ok) session = await r.json();
  } catch { /* the server does not answer: what is asked for next says so */ }
  for (const scope of ['operate', 'approve', 'submit']) document.documentElement.classList.toggle(`no-${scope}`, !may(scope));
  return session;
}

export const may = (scope) => !session.name || session.scopes.includes(scope);

// user is who logged in here; "" where nobody did.
export const user = () => (session.by === 'session' ? session.name : '');

// store is what commands that need the store of this server name it by; URI where that is not told.
export const store = () => session.store || 'URI';

// guard adds what a request needs that changes something.
export function guard(method, headers) {
  if (method !== 'GET' && method !== 'HEAD' && session.csrf_token) headers.set('X-CSRF-Token', session.csrf_token);
}

// renew reports whether there is another session than this page knows of, as one that another tab began.
export async function renew() {
  const before = session.csrf_token;
  await begin();
  return Boolean(session.csrf_token) && session.csrf_token !== before;
}

let left = false; // somebody logged out

// toLogin leaves for the login page, and comes back after it. After a logout nobody is to come back.
export function toLogin() {
  if (!left && location.pathname !== '/ui/login') location.assign('/ui/login?next=' + encodeURIComponent(location.pathname + location.search));
}

// login returns what is wrong, or nothing. Whoever logged in loads the next page anew, and begins there.
export async function login(name, password) {
  const r = await fetch('/api/v1/login', {
    method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json' }, body: JSON.stringify({ name, password }),
  });
  if (r.ok) return '';
  const p = await r.json().catch(() => ({}));
  const wait = r.headers.get('Retry-After');
  return (p.detail || `The server answered with ${r.status}.`) + (wait ? ` Try again in ${wait} s.` : '');
}

export async function logout() {
  const headers = new Headers();
  guard('POST', headers);
  left = true;
  await fetch('/api/v1/logout', { method: 'POST', headers });
  location.assign('/ui/login');
}
