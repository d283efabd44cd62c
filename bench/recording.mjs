// npm run bench:recording: a streamed turn of an llm agent with `record: all`, beside the same agent with `record: none`, in turns.
// ROUNDS (9), SECONDS (6), CLIENTS (8): of the load. CHUNKS (200): pieces of an answer. DIST: the
// build to measure. The model is a local server with OpenAI's chat completions API that answers at once.
import { createServer } from 'node:http';
import { startCluster } from './cluster.mjs';
import { Target } from './client.mjs';
import { oneByOne, quantile, together } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';

const ROUNDS = numberSetting('ROUNDS', 9);
const SECONDS = numberSetting('SECONDS', 6);
const CLIENTS = numberSetting('CLIENTS', 8);
const CHUNKS = numberSetting('CHUNKS', 200);
const SINGLE = 40;
/** A message as people write it: what is recorded of a call is mostly what the model was sent. */
const TEXT = 'Please compare the two offers and say which one is better for us, and why. '.repeat(20);

const model = await startModel();
const cluster = await startCluster({
  dist: process.env.DIST,
  apis: 1,
  workers: 1,
  env: { OUTBOUND_ALLOW: '127.0.0.1', BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') },
});
try {
  const [{ headers, url }] = (await cluster.tenant({ scopes: 'agents:call,agents:write' })).targets;
  const off = await agent('off', 'none');
  const on = await agent('on', 'all');
  const figures = {
    'turns/s': (target) => together(() => turn(target), CLIENTS, SECONDS),
    'turn, 1 client, p50 ms': async (target) => quantile(await oneByOne(() => turn(target), SINGLE), 0.5),
  };
  for (const target of [off, on]) await together(() => turn(target), CLIENTS, 3);
  const rows = [];
  for (const [name, measure] of Object.entries(figures)) {
    const found = { off: [], on: [] };
    for (let round = 0; round < ROUNDS; round++) {
      // The second of a round may find a warmer machine: each is first in every other round.
      const order = round % 2 === 0 ? { off, on } : { on, off };
      for (const [kind, target] of Object.entries(order)) found[kind].push(await measure(target));
    }
    const ratios = found.on.map((figure, round) => figure / found.off[round]);
    rows.push([name, median(found.off), median(found.on), median(ratios, 3)]);
  }
  const what = `${ROUNDS} rounds of ${SECONDS} s, ${CLIENTS} clients, answers of ${CHUNKS} pieces: median (min–max).`;
  console.log(circumstances(what));
  printTable('The cost of recording', ['', '`record: none`', '`record: all`', 'all ÷ none'], rows);

  /** A target for an llm agent that is made here. */
  async function agent(name, record) {
    const config = { model: 'openai-compatible/m', baseUrl: model.url, prompt: 'Be brief.', record };
    const body = JSON.stringify({ name, description: 'Answers', runtime: 'llm', config });
    const made = await fetch(new URL(`/v1/agents/${name}`, url), { method: 'PUT', headers, body });
    if (made.status !== 201) throw new Error(await made.text());
    return new Target(name, new URL(`/agents/${name}`, url), headers);
  }
} finally {
  await cluster.stop();
  model.server.close();
}
process.exit(0);

/** One streamed turn. Counts as one, however many frames it has. */
async function turn(target) {
  await target.stream(undefined, TEXT);
  return 1;
}

/** A model that answers every call with a stream of `CHUNKS` pieces. */
async function startModel() {
  const piece = (delta, finish = null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const usage = { prompt_tokens: 400, completion_tokens: CHUNKS, total_tokens: 400 + CHUNKS };
  const end = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [], usage })}\n\ndata: [DONE]\n\n`;
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let i = 0; i < CHUNKS; i++)
        response.write(piece({ role: 'assistant', content: 'a word or two ' }));
      response.end(piece({}, 'stop') + end);
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { server, url: `http://127.0.0.1:${server.address().port}/v1` };
}
