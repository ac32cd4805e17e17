// One plan: how far it is, its graph, its time line, its tasks, what waits for what, what failed, and with what it was submitted.
import { h, fill, put, href, fullName, labelled, number, plural, ago, instant, pretty, folded, empty, errorBox, command, quoted, copied, throttle } from './dom.js';
import * as api from './api.js';
import { listen } from './events.js';
import { go } from './address.js';
import { notesOf, forgetNotes } from './submit.js';
import { ask, action } from './dialog.js';
import { may } from './session.js';
import { badge, left, progress, COUNTS, FAILED, shown as shownState, ended, icon, began, tookPlan, startedBy } from './states.js';
import taskTable from './tasktable.js';
import { narrow, outline } from './outline.js';
import { runAgain, runs } from './again.js';
import { coloured, lastAttempt } from './log.js';
import { word } from './words.js';

const TABS = [['graph', 'Graph'], ['timeline', 'Time line'], ['tasks', 'Tasks'], ['waiting', 'Pending'], ['failures', 'Failures'], ['params', 'Params'], ['file', 'File']];
const OUTDATED = 8; // results, that are named
const UNRUN = 8; // clean-ups, that are named
const FEW = 500; // tasks, of which each change is told: of more the counts are, and what is in view is asked for
const MANY = 5000; // tasks, above which a plan opens at its table

export default async function plan({ main, params, query, page }) {
  const get = (path, q) => api.get(path, q, { signal: page.signal });
  let p = await get(`/plans/${encodeURIComponent(params.plan)}`);
  const id = p.id;
  const tab = params.tab || (narrow() && p.state === 'failed' ? 'failures' : p.sums.tasks > MANY ? 'tasks' : 'graph');
  if (!TABS.some(([t]) => t === tab)) {
    fill(main, h('h1', {}, 'No such page'), empty(`A plan has no “${params.tab}”.`, h('p', {}, h('a', { href: href('plans', id) }, 'To the plan'))));
    return;
  }

  const state = badge(p.state);
  const title = h('span', {});
  const submitted = h('time', { datetime: p.created, title: instant(p.created) }), took = h('span', { class: 'num' });
  const meta = h('p', { class: 'meta' }, 'Submitted ', submitted, p.submitted_by && [' by ', startedBy(p.submitted_by)], p.source && [' from ', h('code', { class: 'path' }, p.source)], ' · ', took);
  const bar = progress(p);
  const legend = h('ul', { class: 'legend', 'aria-label': 'Tasks by state' });
  const advice = h('div', { class: 'advice' });
  const old = h('div', { class: 'outdated' });
  const notes = notesOf(id);
  const noted = notes.length > 0 && h('div', { class: 'hint noted' }, h('div', { class: 'row' }, h('span', { class: 'strong grow' }, `It was submitted with ${plural(notes.length, 'note')}`),
    h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close the notes', onclick: () => { forgetNotes(id); noted.remove(); } }, '✕')),
    h('ul', {}, notes.map((n) => h('li', {}, h('p', {}, n.line > 0 && h('span', { class: 'place num' }, `${n.line}:${n.column} `), n.message), n.do && command(n.do)))));
  const cancel = action('Cancel', async () => {
    const last = Boolean(p.ending), finally_ = last ? '?finally=true' : ''; // as a person saw the plan
    const { unrun, all, running } = await get(`/plans/${id}/unrun`);
    const names = unrun.slice(0, UNRUN), more = all - names.length;
    const agreed = await ask({
      title: `Cancel ${p.name} #${p.run}?`, ok: 'Cancel the plan', cancel: 'Let it run', danger: true, wide: all > 0, other: all > 0 && running > 0 && `Cancel only what runs (${number(running)})`,
      body: [h('p', {}, 'Nothing more of it is started, and what runs is told to stop. What has succeeded stays, and the rest can be run again later.'),
        p.finally && h('p', {}, last ? 'That stops its tasks of finally, too.' : 'Its tasks of finally run after that all the same. Cancel the plan once more to stop them, too.'),
        all > 0 && h('div', { class: 'hint unrun' }, h('p', {}, h('strong', {}, all === 1 ? 'A clean-up will not finish: ' : `${number(all)} clean-ups will not finish: `),
          names.map((t, i) => [i > 0 && ', ', h('span', { class: 'name' }, t.name)]), more > 0 && ` and ${number(more)} more`, '.'),
        h('p', {}, running > 0 ? `To have ${all === 1 ? 'it' : 'them'} run, cancel only what runs: ${plural(running, 'task')} will count as failed, and the plan goes on from there.`
          : `To run ${all === 1 ? 'it' : 'them'} afterwards, run ${all === 1 ? 'it' : 'them'} again from the ended plan.`))],
    });
    if (!agreed) return;
    if (agreed === 'other') {
      const { stopped } = await api.post(`/plans/${id}/cancel-running`);
      put(said, `${plural(stopped, 'task')} ${stopped === 1 ? 'is' : 'are'} being cancelled. The plan goes on.`);
    } else await api.post(`/plans/${id}/cancel${finally_}`);
    await refresh();
  }, { class: 'danger needs-operate' });
  const retry = action('Run again…', async () => {
    const again = await runAgain(p, { get });
    if (again?.plan) return go(href('plans', again.plan.id));
    if (!again) return;
    put(said, again.text);
    await refresh();
    catchUp();
  }, { class: 'again-button' });
  const cause = h('div', { class: 'cause' }), others = h('nav', { class: 'runs', 'aria-label': 'Runs of this plan' });
  const said = h('p', { class: 'said', role: 'status' });
  // Results that a retry kept though they are of older inputs.
  async function outdated() {
    const names = p.outdated || [];
    const some = names.slice(0, OUTDATED);
    let tasks = [];
    try {
      tasks = (await Promise.all(some.map((name) => get(`/plans/${id}/tasks`, { name })))).flatMap((found) => found.tasks);
    } catch (e) {
      if (e.name === 'AbortError') return;
    }
    const one = names.length === 1;
    const again = action(['Run again', h('span', { class: 'wide' }, ', and what is below')], async () => {
      const ran = await api.post(`/plans/${id}/retry`, { tasks: tasks.map((t) => t.id), downstream: true });
      put(said, `${plural(ran.tasks.length, 'task')} will run again.`);
      await refresh();
      catchUp();
    }, { class: 'needs-operate' });
    fill(old, names.length > 0 && h('div', { class: 'hint' },
      h('p', {}, h('strong', {}, one ? 'A result is outdated. ' : `${number(names.length)} results are outdated. `),
        tasks.map((t, i) => [i > 0 && ', ', h('a', { href: href('tasks', t.id), class: 'name' }, t.name)]), names.length > some.length && ` and ${number(names.length - some.length)} more`,
        one ? ' was kept, and tasks that it needs ran again later. Its output comes from their earlier outputs. To run it again, and what is below:'
          : ' were kept, and tasks that they need ran again later. Their outputs come from earlier outputs. To run them again, and what is below:'),
      names.length === tasks.length && h('div', { class: 'row' }, again), command(`sluice plan retry ${quoted(`${p.name}#${p.run}`)} ${names.length > some.length ? 'TASK...' : names.map(quoted).join(' ')} --downstream`)));
  }
  const counts = { waiting: h('span', { class: 'n' }), failures: h('span', { class: 'n' }), tasks: h('span', { class: 'n' }) };
  const tabs = h('nav', { class: 'tabs', 'aria-label': 'Of this plan' }, TABS.map(([name, label]) =>
    h('a', { href: href('plans', params.plan, name), 'aria-current': name === tab ? 'page' : null }, label, counts[name])));
  const body = h('section', { class: 'tab', id: `tab-${tab}`, 'aria-label': TABS.find(([t]) => t === tab)[1] });

  fill(main,
    h('nav', { class: 'crumbs', 'aria-label': 'Where this is' }, h('a', { href: '/ui/' }, 'Plans')),
    h('div', { class: 'head' }, h('h1', {}, title, state), h('div', { class: 'buttons' }, retry, cancel)),
    meta, others, cause, h('div', { class: 'overall' }, bar, legend), said, advice, old, noted, tabs, h('h2', { class: 'off' }, TABS.find(([t]) => t === tab)[1]), body);
  page.keys = Object.fromEntries(TABS.map(([name], i) => [String(i + 1), () => go(href('plans', params.plan, name))]));

  let mark = ''; // what of the plan was shown last
  function header() {
    const shown = p.stalled ? 'stalled' : p.state;
    page.title(`${p.name} #${p.run} ${p.state}`);
    put(title, `${p.name} #${p.run}`);
    const closes = ended(p) ? (p.stopped || p.closing) === 'timeout' && 'timed out' : { cancelled: 'being cancelled', timeout: 'being stopped, as its timeout is over', failed: 'starting nothing more' }[p.closing];
    const last = p.ending && !ended(p) && `${p.state} finally, after it ${p.stopped === 'timeout' ? 'timed out' : p.ending === 'cancelled' ? 'was cancelled' : p.ending}`;
    state.set(shown, closes ? `${p.state}, ${closes}` : last || shown);
    bar.set(p);
    const all = p.sums.tasks, ready = p.sums.done;
    if (ended(p)) put(said, ''); // what was to run has
    const now = JSON.stringify([p.state, p.stalled, p.counts, p.closing, p.ending, p.outdated]);
    tick();
    if (now === mark) return;
    mark = now;
    fill(legend, h('li', {}, h('strong', {}, `${number(ready)} of ${number(all)}`), ' done'), COUNTS.filter((s) => p.counts[s]).map((s) =>
      h('li', {}, h('a', { href: href('plans', params.plan, 'tasks') + '?state=' + s, class: `s-${s}` }, icon(s), h('span', {}, `${number(p.counts[s])} ${word(s)}`)))));
    const failed = p.sums.broken, allowed = p.counts.allowed;
    put(counts.failures, failed + allowed ? number(failed + allowed) : '');
    put(counts.waiting, p.counts.held + p.counts.queued && !ended(p) ? number(p.counts.held + p.counts.queued) : '');
    put(counts.tasks, number(all));
    cancel.hidden = ended(p) || Boolean(p.closing) && !p.stalled; // once more has the server end what nobody else does
    const notDone = failed + allowed + (p.counts.cancelled || 0) + (p.counts.skipped || 0);
    const busy = p.counts.running + p.counts.claimed;
    retry.hidden = p.state === 'submitting' || p.state === 'abandoned' || Boolean(p.ending) && !ended(p) || !may('operate') && !may('submit') || (ended(p) ? false : !(failed + allowed) || busy > 0);
    retry.classList.toggle('primary', notDone > 0 && p.state !== 'succeeded');
    first(failed, allowed);
    if (p.stalled) {
      fill(advice, h('div', { class: 'hint' }, h('p', {}, h('strong', {}, 'Nobody runs it. '), p.own ? 'The process that ran it is gone. To go on with it here:' : 'No node that is alive serves it. To start one:'),
        command(p.own ? `sluice plan run --resume ${p.id}` : 'sluice worker')));
    } else if (p.state === 'submitting') {
      fill(advice, h('div', { class: 'hint' }, h('p', {}, h('strong', {}, 'It is being submitted. '), 'Nothing of it runs before all of its tasks are in.')));
    } else fill(advice);
    outdated();
  }
  // first shows how most of the tasks failed, and how many failed otherwise.
  let told1 = '';
  async function first(failed, allowed) {
    const now = `${failed} ${allowed} ${p.state}`;
    if (now === told1) return;
    told1 = now;
    cause.classList.toggle('allowed', !failed);
    if (!failed && !allowed) return fill(cause);
    try {
      const { kinds: all } = await get(`/plans/${id}/failures`);
      const kinds = failed ? all.filter((k) => !k.allowed) : all; // what the plan allows is no cause of its failure
      const k = kinds[0]; // the largest one
      if (!k || told1 !== now) return;
      const other = kinds.length - 1, like = k.count - 1;
      fill(cause, h('p', { class: 'row' }, icon(k.allowed ? 'allowed' : k.state), h('strong', { class: 'grow' }, h('a', { href: href('tasks', k.tasks[0].id), class: 'name', 'data-row': '' }, labelled(k.tasks[0])), ': ', k.detail || k.title)),
      h('p', { class: 'muted' }, like ? `${plural(like, 'more task')} failed like it` : 'No other task failed like it', other > 0 && `, and ${plural((failed || allowed) - k.count, 'task')} in ${plural(other, 'other way')}`,
        !failed ? '. The plan allows that. ' : allowed ? `. ${plural(allowed, 'more failure')}, which the plan allows. ` : '. ',
        h('a', { href: href('plans', params.plan, 'failures') }, failed + allowed === 1 ? 'What it printed' : 'All failures')));
    } catch (e) {
      told1 = '';
      if (e.name !== 'AbortError') fill(cause);
    }
  }
  function tick() {
    put(submitted, ago(p.created));
    put(took, `${p.retried ? `retried ${ago(p.retried)} · ` : ''}${ended(p) ? 'took' : 'for'} ${tookPlan(p)}${left(p)}`);
    took.title = p.ended ? `ended ${instant(p.ended)}` : '';
  }

  const refresh = async () => {
    p = await get(`/plans/${id}`);
    header();
    if (!ended(p) && (!stop || counted !== p.sums.tasks > FEW)) follow();
  };
  const soon = throttle(() => refresh().catch(() => { /* the notice says it */ }), 1000);

  // Those who show the plan hear of every event; while the plan runs.
  const listeners = new Set();
  let stop = null, counted = false;
  function follow() {
    stop?.();
    counted = p.sums.tasks > FEW;
    stop = listen(`/plans/${id}/events${counted ? '?counts=true' : ''}`, {
      event: (c) => {
        soon();
        for (const f of listeners) f(c);
        if (c.type === 'plan' && ended({ state: c.state })) setTimeout(close, 500); // the stream ends; what is on the way still comes
      },
      resync: catchUp,
    });
  }
  function close() {
    stop?.();
    stop = null;
    if (!page.over) catchUp();
  }
  function catchUp() {
    soon();
    (views.current?.catchUp || views.current?.reload)?.();
  }
  page.onLeave(() => stop?.());
  page.every(1000, tick);
  page.every(10000, refresh);

  const onEvent = (f) => {
    listeners.add(f);
    return () => listeners.delete(f);
  };
  const views = { current: null };
  header();
  tabs.querySelector('[aria-current]').scrollIntoView({ block: 'nearest', inline: 'center' }); // its counts make it wider
  runs(others, p, { get, icon, describe: (x) => `#${x.run} ${x.stalled ? 'stalled' : x.state}, ${ago(began(x))}` }).catch(() => { /* the page is whole without */ });
  if (!ended(p)) follow();
  const context = { element: body, id, get, page, query, onEvent, plan: () => p, base: href('plans', params.plan) };
  views.current = await show[tab](context);
  page.onLeave(() => views.current?.destroy?.());
}

// drawn shows what another module draws, which may not be there.
const drawn = (file, what) => async (c) => {
  const element = h('div', { class: 'drawn' });
  fill(c.element, element);
  let module;
  try {
    module = await import(`/ui/${file}`);
  } catch (e) {
    fill(c.element, empty(`This program has no ${what}.`, h('p', {}, 'The ', h('a', { href: c.base + '/tasks' }, 'table of its tasks'), ' shows the same in rows; ',
      h('code', {}, 'sluice plan graph'), ' draws it as text or SVG.')));
    return null;
  }
  const stopped = await module.mount(element, {
    plan: c.plan(), api, open: (task) => go(href('tasks', task)), onEvent: (f) => { const off = c.onEvent(f); c.page.onLeave(off); return off; },
  });
  return { destroy: () => stopped?.destroy?.(), reload: () => stopped?.view?.refresh?.() };
};

const graph = drawn('graph.js', 'picture of the graph');

const show = {
  graph: (c) => (narrow() ? outline(c, graph) : graph(c)),
  timeline: drawn('timeline.js', 'time line'),
  tasks: taskTable,
  waiting,
  failures,
  file: planFile,
  params(c) {
    const p = c.plan();
    fill(c.element, h('div', { class: 'columns' },
      h('section', {}, h('h2', {}, 'Params'), p.params && Object.keys(p.params).length ? folded(pretty(p.params), { lines: 60, label: 'params' }) : empty('It was submitted without params.')),
      h('section', {}, h('h2', {}, 'Plan'), h('dl', { class: 'facts' }, facts([
        ['Id', copied(p.id, 'the id')], ['From', p.source && h('code', { class: 'path' }, p.source)], ['Submitted', instant(p.created)], ['By', startedBy(p.submitted_by)], ['Never shown', p.secrets?.join(', ')], ['Retried', instant(p.retried)], ['Ended', instant(p.ended)],
        ['After a failure', p.on_failure === 'stop' ? 'nothing more is started' : 'other branches go on'],
        ['Kept', p.keep ? (p.keep.startsWith('-') ? 'for ever' : `${p.keep} after its end`) : 'as long as the store keeps plans'],
        ['Tasks', number(p.sums.tasks)], ['Added or retried later', p.edits ? number(p.edits) : null],
      ])))));
    return null;
  },
};

// file shows the file that the plan came from, as it was then.
async function planFile(c) {
  const p = c.plan(), { text } = await c.get(`/plans/${c.id}/file`);
  if (!text) {
    fill(c.element, empty('The file was not kept.', h('p', {}, 'A program built the plan, or its file has more than 256 KiB.')));
    return null;
  }
  const saved = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
  c.page.onLeave(() => URL.revokeObjectURL(saved));
  fill(c.element, h('div', { class: 'row file' }, h('span', { class: 'muted grow' }, 'As it was submitted.', p.edits > 0 && ' Tasks were added or run again later.', text.includes('***') && ' Secrets are hidden.'),
    h('a', { class: 'button', href: saved, download: `${p.name}.yaml` }, 'Download'),
    h('a', { class: 'button needs-submit', href: `/ui/submit?plan=${c.id}` }, 'Edit a copy')), folded(text, { lines: 400, label: 'file' }));
  return null;
}

export const facts = (all) => all.filter(([, value]) => value).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]);

// pending says how many tasks have not started, and in which states.
const pending = ({ queued, held }) => `${plural(queued + held, 'task')} ${queued + held === 1 ? 'has' : 'have'} not started: ${[['queued', queued], ['held', held]].filter(([, n]) => n).map(([s, n]) => `${number(n)} ${word(s)}`).join(', ')}`;

async function waiting(c) {
  const out = h('div', {});
  fill(c.element, out);
  async function load() {
    const p = c.plan();
    try {
      const found = await c.get(`/plans/${c.id}/waiting`);
      if (found.waiting === 0) {
        fill(out, empty(ended(p) ? 'The plan has ended: nothing is pending.' : 'Nothing is pending: what is left runs.'));
        return;
      }
      fill(out,
        h('p', { class: 'muted' }, `${pending(p.counts)}. ${found.waiting === 1 ? 'It needs' : 'Each group needs'} one thing before it can start.`,
          found.looked < found.waiting && ` The groups have the first ${number(found.looked)} of the tasks.`),
        h('ul', { class: 'list groups' }, found.groups.map((g) => h('li', {},
          h('div', { class: 'group' },
            h('p', { class: 'row' }, h('strong', { class: 'num big' }, number(g.count)), badge(g.for.state), h('span', { class: 'grow reason' },
              h('a', { href: href('tasks', g.for.id), class: 'name', 'data-row': '' }, labelled(g.for)), ': ', g.for.why)),
            g.for.do && command(g.for.do),
            h('p', { class: 'muted' }, g.count === 1 && g.tasks[0].id === g.for.id ? 'Nothing else needs it.'
              : [`${plural(g.count, 'task')} ${g.count === 1 ? 'needs' : 'need'} it: `, list(g.tasks, g.count)]))))));
    } catch (e) {
      if (e.name !== 'AbortError') fill(out, errorBox(e, load));
    }
  }
  const soon = throttle(load, 2000);
  c.page.onLeave(c.onEvent(soon));
  await load();
  return { reload: load };
}

// list names some tasks, and says how many more there are.
const list = (tasks, count) => [tasks.map((t, i) => [i > 0 && ', ', h('a', { href: href('tasks', t.id) }, labelled(t))]), count > tasks.length && ` and ${number(count - tasks.length)} more`];

const PRINTED = 12; // lines of a failed task

// printed shows on demand what a task printed last: it says more than an exit status.
function printed(c, t, open) {
  const lines = h('pre', { class: 'code' }, '…');
  let asked = false;
  return h('details', { open, ontoggle: async (e) => {
    if (!e.target.open || asked) return;
    asked = true;
    try {
      let all = [], after = 0;
      for (;;) { // a log is read from its start, and is not long: at most a MiB or so an attempt
        const found = await c.get(`/tasks/${t.id}/log`, { after, limit: 5000 });
        all = lastAttempt([...all, ...found.entries]);
        after = found.next;
        if (found.entries.length < 5000) break;
      }
      const last = all.slice(-PRINTED);
      fill(lines, last.length ? last.map((e) => [coloured(e.text.replace(/\n$/, '')), '\n']) : 'It printed nothing.');
    } catch (e) {
      asked = false;
      if (e.name !== 'AbortError') put(lines, e.detail || e.message);
    }
  } }, h('summary', {}, `What ${fullName(t)} printed last`), lines);
}

const OPENED = 3; // kinds of failures, the most frequent ones, of which one sees at once what was printed

async function failures(c) {
  const out = h('div', {});
  let last = '';
  fill(c.element, out);
  async function load() {
    try {
      const found = await c.get(`/plans/${c.id}/failures`);
      const now = JSON.stringify(found) + ended(c.plan());
      if (now === last) return; // what was opened stays open
      last = now;
      if (found.kinds.length === 0) {
        fill(out, empty(ended(c.plan()) ? 'Nothing failed.' : 'Nothing has failed so far.'));
        return;
      }
      fill(out,
        h('p', { class: 'muted' }, `${plural(found.failed, 'task')} failed${found.allowed ? `, and ${number(found.allowed)} as the plan allows` : ''}, in ${plural(found.kinds.length, 'kind')}. Failures that differ only in numbers, ids or quoted text are one kind.`),
        h('ul', { class: 'list groups' }, found.kinds.map((k, i) => h('li', {}, h('div', { class: 'group' },
          h('p', { class: 'row' }, h('strong', { class: 'num big' }, number(k.count)), badge(...shownState(k)), h('span', { class: 'grow reason' }, k.title)),
          k.detail && k.detail !== k.title && (/\n/.test(k.detail) ? h('pre', { class: 'code' }, k.detail) : h('p', { class: 'muted' }, k.detail)),
          printed(c, k.tasks[0], i < OPENED),
          h('p', { class: 'muted' }, list(k.tasks, k.count), ' · ', h('a', { href: `${c.base}/tasks?failure=${k.kind}`, 'data-row': '' }, k.count === 1 ? 'In the table' : 'All in the table')))))));
    } catch (e) {
      if (e.name !== 'AbortError') fill(out, errorBox(e, load));
    }
  }
  const soon = throttle(load, 2000);
  let failed = '';
  c.page.onLeave(c.onEvent((e) => {
    const now = e.counts ? [...FAILED, 'allowed'].map((s) => e.counts[s]).join() : '';
    if (e.type === 'task' && FAILED.includes(e.state) || now !== failed) soon();
    failed = now;
  }));
  await load();
  return { reload: load };
}
