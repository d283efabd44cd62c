import { TaskState } from '@baton/a2a';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Elsewhere, endOf, turnAt } from '../../../../../test/support/agents/remote.js';
import { MemoryJournal } from '../../../../../test/support/agents/turns.js';
import { pour } from '../../../../../test/support/pour.js';

const elsewhere = new Elsewhere();
let server: Server;
let url: string;
/** What it says, one event after the other. */
let events: { statusUpdate: object }[];
/** Sent again and again in place of events, until its reader has left. */
let endless: Buffer | undefined;
let isLeft: Promise<unknown>;

beforeAll(async () => {
  server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.method === 'GET') return response.end(JSON.stringify(card()));
      const { id } = JSON.parse(body) as { id: unknown };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      isLeft = once(response, 'close');
      if (endless) return pour(response, endless);
      const frames = events.map((result) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
      return response.end(frames.join(''));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await elsewhere.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const card = () => ({
  name: 'far',
  description: 'Changes its ids',
  version: '1',
  capabilities: { streaming: true },
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
});
const update = (contextId: string, state = 'TASK_STATE_WORKING', taskId = 'theirs') => ({
  statusUpdate: { taskId, contextId, status: { state } },
});

describe('an agent elsewhere that gives odd ids', () => {
  it('has few of them kept, however often it changes them', async () => {
    events = Array.from({ length: 1_000 }, (_, i) => update(`context ${i}`));
    events.push(update('last', 'TASK_STATE_COMPLETED'));
    const journal = new MemoryJournal();
    const outputs = await elsewhere.run(turnAt(url, 'hi', {}, { journal }));
    expect(endOf(outputs)).toMatchObject({ state: TaskState.TASK_STATE_COMPLETED });
    expect(journal.entries).toHaveLength(100);
  });

  it.each([update('x'.repeat(1_025)), update('c', 'TASK_STATE_WORKING', 'x'.repeat(1_025))])(
    'fails if one is too long',
    async (event) => {
      events = [event];
      const journal = new MemoryJournal();
      expect(endOf(await elsewhere.run(turnAt(url, 'hi', {}, { journal })))).toMatchObject({
        state: TaskState.TASK_STATE_FAILED,
        text: expect.stringContaining('gave an id of more than 1024 characters') as string,
      });
      expect(journal.entries).toEqual([]);
    },
  );
});

describe('an agent elsewhere that streams without end', () => {
  it.each([
    ['comments', ':\n\n'],
    ['bytes of one event', 'data: x'],
  ])('is left at the time limit of the turn: %s', async (_what, bytes) => {
    endless = Buffer.from(bytes.repeat(bytes.startsWith('data') ? 1 : 1_000));
    try {
      expect(endOf(await elsewhere.run(turnAt(url, 'hi', { timeout: '1s' })))).toMatchObject({
        state: TaskState.TASK_STATE_FAILED,
        text: expect.stringContaining('did not end the task within 1 s (timeout)') as string,
      });
      await isLeft;
    } finally {
      endless = undefined;
    }
  });
});
