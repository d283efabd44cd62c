import { NO_EGRESS_LISTS, Outbound } from '@baton/outbound';
import { Logger } from '@baton/telemetry';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CanceledRemoteCalls } from './canceled-remote-calls.js';

const outbound = new Outbound({ outboundAllow: ['127.0.0.1'] });
let server: Server | undefined;
afterEach(() => server?.close());
afterAll(() => outbound.onApplicationShutdown());

/** One sweep with one canceled task that has this journal. @returns the tasks that are forgotten */
async function sweep(journal: object[], url?: string): Promise<string[]> {
  const forgotten: string[] = [];
  const calls = {
    takeCanceled: async () => [{ tenantId: 'tenant', taskId: 'task', agentId: 'agent', owner: null }],
    forget: async (_: string, taskId: string) => void forgotten.push(taskId),
  };
  const config = { model: 'openai/m', tools: { mcp: [{ name: 'desk', url }] } };
  const agent = url && { slug: 'clerk', definition: { runtime: 'llm', config } };
  const sweeping = new CanceledRemoteCalls(
    calls as never,
    { read: async () => journal } as never,
    { findIncludingDeleted: async () => agent } as never,
    {} as never,
    {} as never,
    outbound,
    { egress: async () => NO_EGRESS_LISTS } as never,
    {} as never,
    { on: () => undefined } as never,
    Logger.silent(),
  );
  await sweeping.runOnce();
  return forgotten;
}

it('a canceled task is forgotten once no tool server needs the cancel', async () => {
  expect(await sweep([])).toEqual(['task']);
});

it.each([
  ['stays until its tool server answers the cancel', 503, {}, []],
  ['is forgotten when its tool server has the cancel', 200, { result: {} }, ['task']],
  [
    'is forgotten when its tool server refuses the cancel',
    200,
    { error: { code: -32602, message: 'Task not found' } },
    ['task'],
  ],
])('a canceled task %s', async (_, status, answer, forgotten) => {
  const methods: unknown[] = [];
  server = createServer((request, response) => {
    methods.push(request.headers['mcp-method']);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answer }));
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const remote = { server: 'desk', url, task: { taskId: 'report' } };
  expect(await sweep([{ value: { kind: 'remote', call: 'call-1-1', remote } }], url)).toEqual(forgotten);
  expect(methods).toEqual(['tasks/cancel']);
});
