// The address of the page that is shown. The frame says what a new address shows; pages change the address.

let show = () => {};

// onGo sets what shows the page of a new address.
export function onGo(f) { show = f; }

export function go(url) {
  history.replaceState({ ...history.state, scroll: scrollY }, '');
  history.pushState({}, '', url);
  show();
}

// remember puts what a page filters by into its address, so that a link to it shows the same.
export function remember(values) {
  const q = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value) q.set(name, value);
    else q.delete(name);
  }
  const text = q.toString();
  history.replaceState(history.state, '', location.pathname + (text ? '?' + text : ''));
}
