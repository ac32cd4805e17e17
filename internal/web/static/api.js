// The REST API, as pages ask it. What goes wrong is a Problem, whose detail says what to do.
import * as session from './session.js';

export const ROOT = '/api/v1';

export class Problem extends Error {
  constructor(p) {
    super(p.detail || p.title || 'unknown');
    Object.assign(this, { status: 0, code: '', errors: [], title: '', detail: this.message }, p);
  }
}

let watcher = () => {};
let reachable = true;
// onReach is told when the server stops to answer, and when it does again.
export function onReach(f) { watcher = f; }
function reach(now) {
  if (now !== reachable) { reachable = now; watcher(now); }
}

// exactly reads JSON so that a number which JavaScript has no room for stays as it was written, where the browser can do that.
function exactly(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) =>
    typeof value === 'number' && context && context.source !== undefined && String(value) !== context.source ? JSON.rawJSON(context.source) : value);
}

async function ask(method, path, { query, body, type, headers, signal, exact, again } = {}) {
  const url = new URL(path.startsWith('/oste/') ? path : ROOT + path, location.origin);
  for (const [name, value] of Object.entries(query || {})) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, one);
  }
  const h = new Headers(headers);
  h.set('Accept', 'application/json');
  const form = body instanceof FormData; // of which the browser says the type
  if (body !== undefined && !form) h.set('Content-Type', type || 'application/json');
  session.guard(method, h);
  let r, text;
  try {
    r = await fetch(url, { method, headers: h, signal, cache: 'no-store', body: body === undefined ? undefined : type || form ? body : JSON.stringify(body) });
    text = await r.text();
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    reach(false);
    throw new Problem({
      code: 'unreachable', title: 'The server does not answer',
      detail: 'Look whether sluice serve still runs, and whether this host reaches it. The page goes on when it is back.',
    });
  }
  let p = null;
  if (!r.ok) { try { p = JSON.parse(text); } catch { /* it is not this API that answers */ } }
  const behind = !r.ok && !p && r.status >= 502 && r.status <= 504; // a proxy before the server
  reach(!behind);
  if (behind) {
    throw new Problem({
      code: 'unreachable', status: r.status, title: 'The server does not answer',
      detail: `A proxy before it answered with ${r.status}. Look whether sluice serve still runs, and whether the proxy reaches it. The page goes on when it is back.`,
    });
  }
  if (r.ok) {
    const value = text === '' ? null : exact ? exactly(text) : JSON.parse(text);
    return { value, etag: r.headers.get('ETag'), status: r.status };
  }
  p ||= { detail: text.trim() && !/^\s*</.test(text) ? text.slice(0, 500) : 'Nothing more is known. The log of sluice serve, and of a proxy before it, may say more.' };
  if (r.status === 401) session.toLogin();
  if (r.status === 403 && p.code === 'csrf' && !again && await session.renew()) {
    return ask(method, path, { query, body, type, headers, signal, exact, again: true });
  }
  throw new Problem({ ...p, status: r.status, title: titles[p.code] || p.title || `The server answered with ${r.status}` });
}

const titles = {
  not_found: 'Not found', conflict: 'That cannot be done as it is now', plan_active: 'Part of it still runs', overlap: 'Another run has not ended', plan_ended: 'The plan has ended',
  precondition: 'Somebody else changed it', forbidden: 'You may not do that', unavailable: 'The store does not answer', full: 'The store is full',
};

export const get = async (path, query, options) => (await ask('GET', path, { query, ...options })).value;
export const getWithTag = (path, query, options) => ask('GET', path, { query, ...options });
export const send = async (method, path, body, options) => (await ask(method, path, { body, ...options })).value;
export const post = (path, body, options) => send('POST', path, body, options);
