// npm run pictures: makes the pictures of README and docs from real runs: a task that has failed, with its trace, and a tool call
// that waits for a person. Baton as `npm start` runs it; the model and the tools are servers of this script, and have the real
// protocols. Chromium: CHROMIUM_PATH, or the one on PATH.
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { signIn, startChromium } from './chromium.mjs';
import { message } from './caller.mjs';
import { startBaton } from './servers.mjs';

const require = createRequire(import.meta.url);
require('../test/support/load-typescript.js');
const { ModelProvider } = require('../test/support/model-provider/model-provider.ts');
const { startModernServer } = require('../test/support/mcp-server/modern-server.ts');

const file = (name) => fileURLToPath(new URL(`../docs/images/${name}.png`, import.meta.url));
const WIDTH = 1_280;
const usage = (input, output) => ({ input, output });
const said = (text) => ({ content: [{ type: 'text', text }] });
const after = async (ms, value) => {
  await delay(ms);
  return value;
};

/** The model looks the order up, then the parcel, and calls the tool that pays the money back. */
async function reply({ body: { messages } }) {
  const results = messages.filter(({ role }) => role === 'tool').length;
  const order = { order: 'A-1042' };
  if (results === 0)
    return after(700, { calls: [{ name: 'shop_find_order', input: order }], usage: usage(412, 31) });
  if (results === 1)
    return after(900, { calls: [{ name: 'shop_track_parcel', input: order }], usage: usage(655, 27) });
  const refund = { ...order, amount: 59.9, reason: 'The parcel was lost on its way.' };
  return after(1_100, { calls: [{ name: 'shop_refund', input: refund }], usage: usage(840, 64) });
}

const provider = await ModelProvider.start();
provider.answer(async (request) => {
  const { messages } = request.body;
  const isSecond = JSON.stringify(messages).includes('without asking');
  const results = messages.filter(({ role }) => role === 'tool').length;
  // Nothing comes of it: the shop has no money, and then the account of the model has none.
  return isSecond && results === 3
    ? after(400, { status: 400, error: 'Your account has no credit left.' })
    : reply(request);
});
const input = (names) => ({
  type: 'object',
  properties: Object.fromEntries(
    names.map((name) => [name, { type: name === 'amount' ? 'number' : 'string' }]),
  ),
});
const server = await startModernServer({
  tools: [
    {
      name: 'find_order',
      description: 'Finds an order.',
      inputSchema: input(['order']),
      call: () => after(350, said('Order A-1042: one lamp, 59.90 EUR, sent on 12 November.')),
    },
    {
      name: 'track_parcel',
      description: 'Says where a parcel is.',
      inputSchema: input(['order']),
      call: () => after(620, said('Not seen since 14 November.')),
    },
    {
      name: 'refund',
      description: 'Gives the money of an order back.',
      inputSchema: input(['order', 'amount', 'reason']),
      call: () => after(240, { ...said('The account of the shop has no money.'), isError: true }),
    },
  ],
});
const baton = await startBaton({ workers: 1, env: { OUTBOUND_ALLOW: '127.0.0.1' } });
const browser = await startChromium();
try {
  await write('support', ['refund']);
  await write('support-alone', []);
  const asking = await send(
    'support',
    'Where is my lamp? Order A-1042. If it is lost, I want my money back.',
  );
  const failed = await send('support-alone', 'Order A-1042 is lost: give the money back without asking.');
  for (const id of [asking, failed]) await ended(id);
  await picture(`tasks/${failed}?tab=trace`, 'failed-task', 745);
  await picture('inbox', 'approval', 685);
} finally {
  await browser.close();
  await baton.stop();
  await Promise.all([provider.stop(), server.stop()]);
}
process.exit(0);

/** Writes an agent. @param approval the tools that a person must approve */
async function write(slug, approval) {
  const config = {
    model: 'openai-compatible/gpt-5-mini',
    baseUrl: provider.url,
    prompt: 'You help customers of a lamp shop. Look before you answer.',
    record: 'all',
    tools: { mcp: [{ name: 'shop', url: server.url, approval }] },
  };
  const agent = { name: 'Support', description: 'Helps customers.', runtime: 'llm', config };
  await ask('PUT', `/v1/agents/${slug}`, agent);
}

async function send(agent, text) {
  const params = { ...message(text), configuration: { returnImmediately: true } };
  const { result } = await ask('POST', `/agents/${agent}`, {
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params,
  });
  return result.task.id;
}

/** Resolves when the turn of a task has ended: then its stream ends. */
async function ended(id) {
  const headers = { authorization: `Bearer ${baton.token}` };
  await (await fetch(`${baton.url}/v1/tasks/${id}/events`, { headers })).text();
}

async function ask(method, path, body) {
  const headers = {
    authorization: `Bearer ${baton.token}`,
    'content-type': 'application/json',
    'a2a-version': '1.0',
  };
  const answer = await fetch(baton.url + path, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

async function picture(path, name, height) {
  const viewport = { width: WIDTH, height };
  const context = await browser.newContext({ viewport, colorScheme: 'light', reducedMotion: 'reduce' });
  const page = await context.newPage();
  await page.addInitScript(signIn(baton.token));
  await page.goto(`${baton.url}/console/${path}`);
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: file(name) });
  console.log(file(name));
  await context.close();
}
