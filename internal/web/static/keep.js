// How long a queue's finished tasks stay that are of no plan, as people read and write it: succeeded=36h, failed=30d, lost=forever.
import { word } from './words.js';

const states = ['succeeded', 'failed', 'terminated', 'cancelled', 'orphaned'];
const day = 24;

const ageText = (d) => {
  if (d.startsWith('-')) return 'forever';
  const hours = d.match(/^(\d+)h0m0s$/)?.[1];
  if (hours) return hours % day ? `${hours}h` : `${hours / day}d`;
  return d.replace(/m0s$/, 'm').replace(/h0m$/, 'h');
};

export const keepText = (keep) => states.filter((s) => keep?.[s]).map((s) => `${word(s)}=${ageText(keep[s])}`).join(', ');

// keepOf reads such a text. The server judges the ages.
export function keepOf(text) {
  const keep = {};
  text.split(',').map((part) => part.trim()).filter(Boolean).forEach((part) => {
    const [name, age] = part.split('=').map((x) => x.trim());
    const state = states.find((s) => s === name || word(s) === name);
    if (!state || !age) throw new Error(`Write how long as STATE=AGE, as in succeeded=36h. The states are ${states.map(word).join(', ')}.`);
    const days = age.match(/^(\d+)d$/)?.[1];
    keep[state] = age === 'forever' ? '-1s' : days ? `${days * day}h` : age;
  });
  return keep;
}
