// What people read for the states of tasks whose names say little; Go's plan.Word has the same.
const words = { held: 'waiting', claimed: 'starting', terminated: 'stopped', orphaned: 'lost' };

export const word = (state) => words[state] || state;
