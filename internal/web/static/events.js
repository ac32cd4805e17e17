// What changes, as it does: server-sent events of the API. A browser keeps few connections to one host for all of its tabs, so a tab that
// nobody sees lets go of its own, and asks anew when it is seen.

import { get } from './api.js';

// listen calls on.event({type: 'task' or 'plan', …change}) for each event, and on.resync() where some may have been missed. It returns what ends it.
export function listen(path, on) {
  let source = null, over = false, timer = 0, wait = 1000, opened = false;

  function open() {
    if (over || source || document.hidden) return;
    source = new EventSource('/api/v1' + path);
    source.onopen = () => {
      wait = 1000;
      if (opened) on.resync?.();
      opened = true;
    };
    for (const type of ['task', 'plan']) {
      source.addEventListener(type, (e) => {
        let change;
        try { change = JSON.parse(e.data); } catch { return; }
        on.event({ ...change, type });
      });
    }
    source.onerror = () => {
      get('/now').catch(() => { /* the notice says that the server does not answer */ });
      if (!source || source.readyState !== EventSource.CLOSED) return; // it tries again by itself
      close();
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 30000);
    };
  }
  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }
  function seen() {
    if (document.hidden) close();
    else open();
  }
  document.addEventListener('visibilitychange', seen);
  open();
  return () => {
    over = true;
    close();
    document.removeEventListener('visibilitychange', seen);
  };
}
