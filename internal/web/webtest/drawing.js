// Mounts one drawing, as the plan's page does, and tells whoever drives the browser how it goes.
const query = new URLSearchParams(location.search);
window.opened = [];
addEventListener('error', (e) => { window.failed = e.message; });
addEventListener('unhandledrejection', (e) => { window.failed = String(e.reason?.stack || e.reason); });
addEventListener('securitypolicyviolation', (e) => { window.violated = `${e.violatedDirective}: ${e.blockedURI}`; });
if (query.get('theme')) document.documentElement.dataset.theme = query.get('theme');

const api = {
  async get(path) {
    const most = query.get('most');
    if (most && path.includes('/graph')) path += `${path.includes('?') ? '&' : '?'}most=${most}`;
    const r = await fetch(`/api/v1${path}`);
    const body = await r.json();
    if (!r.ok) throw new Error(body.detail);
    (window.asked ||= []).push(path);
    return body;
  },
};

const plan = await api.get(`/plans/${query.get('plan')}`);
const listeners = new Set();
const source = new EventSource(`/api/v1/plans/${plan.id}/events`);
for (const type of ['task', 'plan']) source.addEventListener(type, (e) => { for (const f of listeners) f({ ...JSON.parse(e.data), type }); });
source.onopen = () => { window.listening = true; };
const { mount } = await import(`/ui/${query.get('module')}.js`);
const mounted = await mount(document.querySelector('#drawing'), {
  plan, api, open: (id) => window.opened.push(id), onEvent: (f) => { listeners.add(f); return () => listeners.delete(f); },
});
window.view = mounted.view;
window.mounted = mounted;
requestAnimationFrame(() => { window.drawn = performance.now(); });

let frames = 0, began = 0, last = 0, counting = false, moved = 0, at = null;
function frame(now) {
  if (!counting) return;
  const v = window.view.surface.view;
  if (at) moved += Math.abs(v.x - at.x) * v.kx + Math.abs(v.y - at.y) * v.ky;
  at = { ...v };
  frames++;
  last = now;
  requestAnimationFrame(frame);
}
window.startFrames = () => {
  counting = true;
  frames = moved = 0;
  at = null;
  requestAnimationFrame((now) => { began = last = now; requestAnimationFrame(frame); });
};
window.endFrames = () => {
  counting = false;
  return { FPS: frames / Math.max(last - began, 1) * 1000, Moved: moved };
};
