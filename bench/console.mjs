// npm run bench:console: how long the console's list of tasks takes from the navigation until its rows are on the screen.
// ROUNDS=15 TASKS=5000. Real Baton as `npm start` runs it, and Chromium (CHROMIUM_PATH, or the one on PATH). Cold: a new profile of
// the browser. Warm: the same page again in that profile. Far: cold, over a line of 20 Mbit/s with 40 ms to the server.
import { signIn, startChromium } from './chromium.mjs';
import { connect, fillTenant, tenantsOf } from './fill.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';
import { startBaton } from './servers.mjs';

const ROUNDS = numberSetting('ROUNDS', 15);
const TASKS = numberSetting('TASKS', 5_000);
const KINDS = { cold: 'cold cache', warm: 'warm cache', far: 'cold, 20 Mbit/s, 40 ms away' };
const LINE = { offline: false, latency: 40, downloadThroughput: 2_500_000, uploadThroughput: 2_500_000 };

const baton = await startBaton({ workers: 1 });
const browser = await startChromium();
try {
  await fill();
  const found = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, []]));
  // The first rounds warm up Baton and the browser. They do not count.
  for (let round = -2; round < ROUNDS; round++) {
    const times = await measure();
    if (round >= 0) for (const kind of Object.keys(KINDS)) found[kind].push(times[kind]);
  }
  console.log(circumstances(`${TASKS} tasks, ${ROUNDS} rounds: median (smallest–largest).`));
  printTable(
    'The list of tasks, ms from the navigation',
    ['', 'rows on the screen', 'first paint', 'first call of the API', 'requests', 'KiB'],
    Object.entries(KINDS).map(([kind, name]) => [
      name,
      ...['rows', 'paint', 'asked', 'requests', 'kib'].map((each) =>
        median(found[kind].map((times) => times[each])),
      ),
    ]),
  );
} finally {
  await browser.close();
  await baton.stop();
}

async function fill() {
  const client = await connect(baton.databaseUrl, baton.home);
  const [tenantId] = await tenantsOf(client, 0);
  await fillTenant(client, tenantId, TASKS, 3, () => undefined);
  await client.query('ANALYZE');
  await client.end();
}

/** One round: the page in a new profile, again in that profile, and in another one that is far away. */
async function measure() {
  const near = await newPage();
  const cold = await open(near);
  // The browser keeps the code of a file compiled after its second use.
  await open(near);
  const warm = await open(near);
  await near.context().close();
  const remote = await newPage();
  const devTools = await remote.context().newCDPSession(remote);
  await devTools.send('Network.enable');
  await devTools.send('Network.emulateNetworkConditions', LINE);
  const far = await open(remote);
  await remote.context().close();
  return { cold, warm, far };
}

async function newPage() {
  const page = await (await browser.newContext()).newPage();
  // Before all scripts of the page: signs in, and notes the first paint, and the first rows that are on the screen.
  await page.addInitScript(`
    ${signIn(baton.token)}
    window.painted = new Promise((seen) => new PerformanceObserver((list) => {
      for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') seen(startTime);
    }).observe({ type: 'paint', buffered: true }));
    window.rows = new Promise((seen) => new MutationObserver((_, observer) => {
      if (document.querySelectorAll('[role="table"] [role="row"]').length < 6) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => seen(performance.now())));
    }).observe(document, { childList: true, subtree: true }));`);
  return page;
}

/** Opens the list. @returns the browser's timings of it */
async function open(page) {
  await page.goto(`${baton.url}/console/tasks`, { waitUntil: 'commit' });
  return page.evaluate(`Promise.all([window.rows, window.painted]).then(([rows, paint]) => {
    const files = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    const calls = files.filter(({ name }) => name.includes('/v1/')).map(({ startTime }) => startTime);
    const kib = files.reduce((sum, { transferSize }) => sum + transferSize, 0) / 1024;
    return { rows, paint, asked: Math.min(...calls), requests: files.length, kib };
  })`);
}
