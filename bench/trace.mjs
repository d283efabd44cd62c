// npm run bench:trace: how long the page of a large task takes in the console: from the navigation until the rows of its trace are on the
// screen, from a click on a span until its detail is there, and from a click on the tab Log until its entries are. Then the longest time
// between two frames while the trace is scrolled, and for how long one piece of work holds the tab: while it loads, is scrolled, and while
// a task with as many events runs.
// ROUNDS=9 SPANS=5000 EVENTS=10000. Real Baton as `npm start` runs it, and Chromium (CHROMIUM_PATH, or the one on PATH).
import { message } from './caller.mjs';
import { signIn, startChromium } from './chromium.mjs';
import { connect, fillHuge, tenantsOf } from './fill.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';
import { startBaton } from './servers.mjs';

const ROUNDS = numberSetting('ROUNDS', 9);
const SPANS = numberSetting('SPANS', 5_000);
const EVENTS = numberSetting('EVENTS', 10_000);
const FRAMES = 120;

const baton = await startBaton({ workers: 1 });
const browser = await startChromium();
try {
  const id = await fill();
  const found = {
    trace: [],
    loading: [],
    span: [],
    log: [],
    frame: [],
    scrolling: [],
    drawn: [],
    live: [],
    liveLog: [],
  };
  // The first rounds warm up Baton and the browser. They do not count.
  for (let round = -2; round < ROUNDS; round++) {
    const figures = { ...(await measure(id)), live: await live('Trace'), liveLog: await live('Log') };
    if (round >= 0) for (const [name, figure] of Object.entries(figures)) found[name].push(figure);
  }
  console.log(circumstances(`${SPANS} spans, ${EVENTS} events, ${ROUNDS} rounds: median (min–max).`));
  printTable(
    'The page of a large task',
    ['', ''],
    [
      ['navigation until the trace is there, ms', median(found.trace)],
      ['longest task of the tab until then, ms', median(found.loading)],
      ['click on a span until its detail is there, ms', median(found.span)],
      ['click on Log until its entries are there, ms', median(found.log)],
      ['longest frame while scrolling, ms', median(found.frame)],
      ['longest task of the tab while scrolling, ms', median(found.scrolling)],
      ['longest task while the task runs, the trace open, ms', median(found.live)],
      ['longest task while the task runs, the log open, ms', median(found.liveLog)],
      ['rows of the trace in the page', median(found.drawn)],
    ],
  );
} finally {
  await browser.close();
  await baton.stop();
}

/** A finished task with that many events, and model and tool calls in turns. @returns its id */
async function fill() {
  const client = await connect(baton.databaseUrl, baton.home);
  const [tenantId] = await tenantsOf(client, 0);
  const id = await fillHuge(client, tenantId, EVENTS, () => undefined);
  await client.query(
    `INSERT INTO turn_journal (tenant_id, task_id, run_id, attempt, position, value)
     SELECT r.tenant_id, r.task_id, r.id, 1, i, CASE i % 2
       WHEN 1 THEN json_build_object('kind', 'step', 'at', a.at, 'ms', 400, 'model', 'openai/m', 'finish', 'tool-calls',
         'message', json_build_object('role', 'assistant', 'content', json_build_array()),
         'usage', json_build_object('inputTokens', 100, 'outputTokens', 10))
       ELSE json_build_object('kind', 'result', 'call', 'call-' || i || '-1', 'tool', 'search', 'at', a.at, 'ms', 300,
         'result', json_build_object('ok', true, 'content', 'found')) END
     FROM runs r, generate_series(1, $3) i,
       LATERAL (SELECT to_char((r.created_at AT TIME ZONE 'UTC') + i * interval '500 ms', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at) a
     WHERE r.tenant_id = $1 AND r.task_id = $2`,
    [tenantId, id, SPANS],
  );
  await client.query('ANALYZE');
  await client.end();
  return id;
}

/** A page that notes the longest task of its thread. The browser reports those above 50 ms. */
async function newPage() {
  const page = await (await browser.newContext({ viewport: { width: 1_280, height: 900 } })).newPage();
  await page.addInitScript(`
    ${signIn(baton.token)}
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({ type: 'longtask', buffered: true });
    window.takeLongest = () => new Promise((done) => setTimeout(() => {
      done(window.longest);
      window.longest = 0;
    }, 100));`);
  return page;
}

/** The longest task of the tab while a task runs whose agent sends as many events as it can. @param tab the one that is open */
async function live(tab) {
  const page = await newPage();
  const headers = {
    authorization: `Bearer ${baton.token}`,
    'content-type': 'application/json',
    'a2a-version': '1.0',
  };
  const params = { ...message('piece '), configuration: { returnImmediately: true } };
  params.message.metadata = { echo: { chunks: EVENTS } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
  const answer = await fetch(`${baton.url}/agents/echo`, { method: 'POST', headers, body });
  const { task } = (await answer.json()).result;
  await page.goto(`${baton.url}/console/tasks/${task.id}?tab=${tab.toLowerCase()}`);
  await page.getByText('The task has ended.').waitFor({ timeout: 120_000 });
  const longest = await page.evaluate('window.takeLongest()');
  await page.context().close();
  return longest;
}

async function measure(id) {
  const page = await newPage();
  const rowsOf = (name) => `document.querySelectorAll('[aria-label="${name}"] > li').length`;
  /** Resolves in the page, after the frame in which the list has rows, with the time since the navigation. */
  const seen = (name) => `new Promise((done) => {
    const look = () => ${rowsOf(name)} > 5 ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : requestAnimationFrame(look);
    look();
  })`;
  await page.goto(`${baton.url}/console/tasks/${id}?tab=trace`, { waitUntil: 'commit' });
  const trace = await page.evaluate(seen('Trace of the task'));
  const loading = await page.evaluate('window.takeLongest()');
  const drawn = await page.evaluate(rowsOf('Trace of the task'));
  const frame = await page.evaluate(`new Promise((done) => {
    const scroller = document.querySelector('[aria-label="Trace of the task"]').parentElement;
    let [left, last, longest] = [${FRAMES}, performance.now(), 0];
    const next = (now) => {
      longest = Math.max(longest, now - last);
      last = now;
      scroller.scrollTop += scroller.scrollHeight / ${FRAMES};
      if (--left > 0) requestAnimationFrame(next);
      else done(longest);
    };
    requestAnimationFrame(next);
  })`);
  const scrolling = await page.evaluate('window.takeLongest()');
  const span = await page.evaluate(`new Promise((done) => {
    const start = performance.now();
    const row = document.querySelector('[aria-label="Trace of the task"] button[aria-expanded]');
    row.click();
    const look = () => row.parentElement.innerText.includes('Attempt') ? done(performance.now() - start) : requestAnimationFrame(look);
    look();
  })`);
  const log = await page.evaluate(`(() => {
    const start = performance.now();
    [...document.querySelectorAll('[role="tab"]')].find((tab) => tab.innerText === 'Log').click();
    return ${seen('Events of the task')}.then((end) => end - start);
  })()`);
  await page.context().close();
  return { trace, loading, span, log, frame, scrolling, drawn };
}
