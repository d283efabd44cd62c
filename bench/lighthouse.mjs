// npm run bench:lighthouse: Lighthouse's score of every page of the console: accessibility and best practices, of 100. Ends with an
// error if a page has less than 95. PAGES=/tasks,/usage: only these. Real Baton as `npm start` runs it, and Chromium
// (CHROMIUM_PATH, or the one on PATH). Lighthouse is no dependency of Baton: the script installs it in .baton/lighthouse.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import getPort from 'get-port';
import { signIn, startChromium } from './chromium.mjs';
import { circumstances, printTable } from './report.mjs';
import { startBaton } from './servers.mjs';

const VERSION = '12.8.2';
const ENOUGH = 95;
const CATEGORIES = ['accessibility', 'best-practices'];
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, '.baton/lighthouse');

const { lighthouse, puppeteer } = await install();
const port = await getPort();
const baton = await startBaton({ workers: 1 });
const browser = await startChromium(`--remote-debugging-port=${port}`);
let worst = 100;
try {
  const rows = [];
  for (const { path, ...page } of await pages()) {
    const { scores, failed } = await audit(page);
    worst = Math.min(worst, ...scores);
    rows.push([path, ...scores.map(String)]);
    for (const line of failed) console.log(`${path}: ${line}`);
  }
  console.log(circumstances(`Lighthouse ${VERSION}.`));
  printTable('Lighthouse', ['page', ...CATEGORIES], rows);
} finally {
  await browser.close();
  await baton.stop();
}
process.exit(worst < ENOUGH ? 1 : 0);

/** Every page, with a task and an agent to look at. */
async function pages() {
  const id = await sendMessage();
  const operator = makeOperatorToken();
  const tenantPage = (path) => ({ path, url: `${baton.url}/console${path}`, token: baton.token });
  const operatorPage = (path) => ({
    path,
    url: `${new URL(baton.metricsUrl).origin}/console${path}`,
    token: operator,
  });
  const all = [
    { ...tenantPage('/sign-in'), token: undefined },
    ...['/tasks', `/tasks/${id}`, `/tasks/${id}/compare`, '/agents', '/agents/echo', '/agents/new'].map(
      tenantPage,
    ),
    ...['/playground', '/schedules', '/webhooks', '/dead-letters', '/usage', '/secrets', '/tokens'].map(
      tenantPage,
    ),
    ...['/operators/workers', '/operators/queue', '/operators/tenants', '/operators/tenants/demo'].map(
      operatorPage,
    ),
    operatorPage(`/operators/task?tenant=demo&id=${id}`),
  ].map((page) => ({ ...page, path: page.path.replaceAll(id, '{id}') }));
  const wanted = process.env.PAGES?.split(',');
  return wanted ? all.filter(({ path }) => wanted.includes(path)) : all;
}

/** The scores of a page, and what costs it points. */
async function audit({ url, token }) {
  const over = await puppeteer.connect({ browserURL: `http://127.0.0.1:${port}` });
  const page = await over.newPage();
  if (token !== undefined) await page.evaluateOnNewDocument(signIn(token));
  const flags = { onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: 'error' };
  const { lhr } = await lighthouse(
    url,
    { ...flags, formFactor: 'desktop', screenEmulation: { disabled: true } },
    undefined,
    page,
  );
  await page.close();
  await over.disconnect();
  const failed = Object.values(lhr.audits).filter(({ score, scoreDisplayMode: mode }) => {
    return (
      score !== null && score < 1 && (mode === 'binary' || mode === 'metricSavings' || mode === 'numeric')
    );
  });
  const finalUrl = lhr.finalDisplayedUrl;
  return {
    scores: CATEGORIES.map((name) => Math.round(lhr.categories[name].score * 100)),
    failed: [
      ...(finalUrl === url ? [] : [`showed ${finalUrl}`]),
      ...failed.map(({ id, title, details }) => {
        const items = (details?.items ?? []).map(
          ({ node, description, url: from }) => node?.snippet ?? description ?? from,
        );
        return `${id}: ${title}\n    ${items.slice(0, 5).join('\n    ')}`;
      }),
    ],
  };
}

async function install() {
  const manifest = join(FOLDER, 'node_modules/lighthouse/package.json');
  if (!existsSync(manifest) || JSON.parse(readFileSync(manifest, 'utf8')).version !== VERSION) {
    const options = ['--prefix', FOLDER, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
    execFileSync('npm', ['install', ...options, `lighthouse@${VERSION}`], { stdio: 'inherit' });
  }
  const { resolve } = createRequire(manifest);
  const [core, client] = await Promise.all(
    ['lighthouse', 'puppeteer-core'].map((name) => import(pathToFileURL(resolve(name)).href)),
  );
  return { lighthouse: core.default, puppeteer: client.default };
}

/** A token of an operator, made as an operator makes one. */
function makeOperatorToken() {
  const main = join(ROOT, 'bin/baton.cjs');
  const env = { ...process.env, BATON_HOME: baton.home };
  return execFileSync(process.execPath, [main, 'operator-tokens', 'create'], {
    env,
    encoding: 'utf8',
  }).trim();
}

/** @returns the id of its task */
async function sendMessage() {
  const message = {
    messageId: randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text: 'What does Lighthouse see?' }],
  };
  const response = await fetch(`${baton.url}/agents/echo`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${baton.token}`,
      'content-type': 'application/json',
      'A2A-Version': '1.0',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
  });
  return (await response.json()).result.task.id;
}
