// DBOS Transact as its documentation sets it up: workflows in the process of the application, state in Postgres. Plain node:http in
// front, which costs less than the frameworks of its examples. Tells the parent process its port.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { listen } from './listen.mjs';
import { tick } from './tick.mjs';

const send = DBOS.registerWorkflow(async (text) => text, { name: 'send' });
const steps = DBOS.registerWorkflow(
  async (/** @type {string} */ text) => {
    const one = await DBOS.runStep(async () => `${text} 1`, { name: 'one' });
    const two = await DBOS.runStep(async () => `${one} 2`, { name: 'two' });
    return DBOS.runStep(async () => `${two} 3`, { name: 'three' });
  },
  { name: 'steps' },
);
const stream = DBOS.registerWorkflow(
  async (chunks) => {
    for (let i = 0; i < chunks; i++) await DBOS.writeStream('chunks', 'chunk');
    await DBOS.closeStream('chunks');
  },
  { name: 'stream' },
);
const sleep = DBOS.registerWorkflow(async (ms) => DBOS.sleep(ms), { name: 'sleep' });
const ticker = DBOS.registerWorkflow(
  async (url) => {
    for (let n = 0; ; n++) await DBOS.runStep(() => tick(url, n), { name: `tick ${n}` });
  },
  { name: 'ticker' },
);

DBOS.setConfig({
  name: 'bench',
  systemDatabaseUrl: process.env.DATABASE_URL,
  logLevel: 'error',
  runAdminServer: false,
  applicationVersion: '1',
});
await DBOS.launch();
await listen({
  send: async (text) => (await DBOS.startWorkflow(send)(text)).getResult(),
  steps: async (text) => (await DBOS.startWorkflow(steps)(text)).getResult(),
  stream: async (chunks, write) => {
    const { workflowID } = await DBOS.startWorkflow(stream)(Number(chunks));
    for await (const chunk of DBOS.readStream(workflowID, 'chunks')) write(chunk);
  },
  sleep: async (ms) => void (await DBOS.startWorkflow(sleep)(Number(ms))),
  ticker: async (url) => void (await DBOS.startWorkflow(ticker)(url)),
});
