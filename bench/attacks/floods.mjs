// Attacks of bench/neighbours.mjs with many small writes: contexts, keys, schedules, cancels, answers.
import { setTimeout as sleep } from 'node:timers/promises';
const json = (value) => JSON.stringify(value);
const post = (a, path, value) => a.request('POST', path, json(value));
const rpc = (method, params) => json({ jsonrpc: '2.0', id: 1, method, params });
const echo = (a, message, configuration = { returnImmediately: true }, method = 'SendMessage') =>
  a.request(
    'POST',
    '/agents/echo',
    rpc(method, {
      message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'x' }], ...message },
      configuration,
    }),
  );
const flood = (act, prepare) => ({ isMany: true, act, prepare });

/** JSON of many levels. */
const deep = (levels) => {
  let value = {};
  for (let i = 0; i < levels; i++) value = { a: value };
  return value;
};
const WIDE = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`k${i}`, 'v']));

/** How long a thousand schedules may take to be made, with the requests a second of a new tenant. */
const MAKING_MS = 45_000;

/** A thousand schedules that are due in the same second. Resolves just before it. */
async function makeSchedules(a) {
  const at = Date.now() + MAKING_MS;
  const makeOne = (name) =>
    a.accepted('POST', '/v1/schedules', { name, agent: 'echo', text: 'x', at: new Date(at).toISOString() });
  for (let i = 0; i < 1_000; i += 50)
    await Promise.all(Array.from({ length: 50 }, (_, n) => makeOne(`due-${at}-${i + n}`)));
  const leftMs = at - Date.now() - 1_000;
  if (leftMs < 0) throw new Error(`The schedules were made ${-leftMs} ms too late`);
  await sleep(leftMs);
}

export const FLOOD_ATTACKS = {
  'flood: one message id': flood((a) => echo(a, { messageId: `the-same-${a.turn++ % 3}` }, {})),
  'flood: message ids': flood((a) => echo(a, {})),
  'flood: long message ids': flood((a) => echo(a, { messageId: crypto.randomUUID() + 'm'.repeat(400) })),
  'flood: one context': flood((a) => echo(a, { contextId: 'one' })),
  'flood: contexts': flood((a) => echo(a, { contextId: crypto.randomUUID() })),
  'flood: wide metadata': flood((a) => echo(a, { metadata: WIDE })),
  'flood: deep metadata': flood((a) => echo(a, { metadata: { deep: deep(190) } })),
  'flood: deep data': flood((a) =>
    echo(a, { parts: Array.from({ length: 100 }, () => ({ data: deep(180) })) }),
  ),
  'flood: many parts': flood((a) =>
    echo(a, { parts: Array.from({ length: 20_000 }, () => ({ text: 'x' })) }),
  ),
  'flood: cancels': flood(
    async (a) => {
      await a.request('POST', '/agents/echo', rpc('CancelTask', { id: a.large }));
      await post(a, `/v1/tasks/${a.large}/cancel`, {});
    },
    (a) => a.startTask('late', { delayMs: 600_000 }),
  ),
  'flood: sends and cancels': flood(async (a) => {
    const id = await a.sendLate();
    if (id) await a.request('POST', '/agents/echo', rpc('CancelTask', { id }));
  }),
  'flood: answers': flood(
    (a) => echo(a, { taskId: a.large }),
    (a) => a.startTask('ask', { askInput: true }),
  ),
  'flood: questions and answers': flood(async (a) => {
    const id = await a.ask4input();
    if (id) await Promise.all(Array.from({ length: 5 }, () => echo(a, { taskId: id })));
  }),
  'flood: due schedules': flood((a) => a.rest(), makeSchedules),
  'flood: agents': flood((a) => a.putRemote(`agent-${a.turn++ % 900}`, 'http://127.0.0.1:9/x')),
  'flood: whoami': flood((a) => a.request('GET', '/v1/whoami')),
};
