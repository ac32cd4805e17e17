// Runs before the first paint, so that a page does not flash in the other theme, and says that it loads.
document.documentElement.classList.add('scripted');
try {
  const theme = localStorage.getItem('sluice-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* storage is switched off: the system's theme it is */ }
