import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Role, type Task, TaskState, agentMessage, textPart } from '@baton/a2a';
import { jsonPart } from '../../agent-runtime.js';
import { userMessage } from '../../../../../test/support/agents/turns.js';
import { Dialogue } from './approval/dialogue.fixture.js';
import { LlmBench, summaryOf, toolOf } from './llm-runtime.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const PROVIDERS = [
  ['openai/gpt-5-mini', {}],
  ['openai/gpt-4o', { api: 'chat' }],
  ['anthropic/claude-sonnet-4-5', {}],
  ['google/gemini-2.5-flash', {}],
  ['openai-compatible/llama3', { key: 'mine' }],
] as const;
const raw = (value: string, mediaType: string) => ({
  content: { $case: 'raw' as const, value: Buffer.from(value) },
  metadata: undefined,
  mediaType,
  filename: '',
});

/** Blank texts and roles that follow each other in a request of any provider. */
function faultsIn(body: unknown): string[] {
  const faults: string[] = [];
  JSON.stringify(body, (key, value: unknown) => {
    const isText = key === 'text' || (key === 'content' && typeof value === 'string');
    if (isText && typeof value === 'string' && value.trim() === '') faults.push(`${key} is blank`);
    if (['messages', 'contents', 'input'].includes(key) && Array.isArray(value)) {
      const roles = value.map(({ role }: { role?: string }) => role);
      roles.forEach((role, i) => {
        if (role === 'user' && roles[i - 1] === 'user') faults.push('two messages of the user in a row');
      });
      if (value.some(({ content, parts }) => (content ?? parts)?.length === 0))
        faults.push('an empty message');
    }
    return value;
  });
  return faults;
}

describe.each(PROVIDERS)('%s', (model, more) => {
  it.each([
    ['a blank text', [textPart('  \n')]],
    ['no part', []],
    ['a blank text beside another', [textPart('hi'), textPart(' ')]],
    ['an empty file', [raw('', 'text/plain'), raw('', 'image/png')]],
    ['a file of blanks', [raw(' \n', 'text/plain')]],
  ])('takes a message with %s', async (_, parts) => {
    bench.provider.reply({ text: 'ok' });
    const { status } = summaryOf(await bench.say({ model, ...more, prompt: ' ' }, userMessage(parts)));
    expect(status).toEqual({ state: COMPLETED });
    expect(faultsIn((await bench.provider.request(1)).body)).toEqual([]);
  });

  it.each(['', ' \n'])(
    'takes its own blank text beside a call, and a result without text: %j',
    async (text) => {
      bench.tools.push(toolOf('look', () => ''));
      bench.provider.reply({ text, calls: [{ name: 'look', input: { city: 'Bern' } }] }, { text: 'ok' });
      const { status } = summaryOf(await bench.say({ model, ...more }));
      expect(status).toEqual({ state: COMPLETED });
      const { body } = await bench.provider.request(2);
      expect(faultsIn(body).filter((fault) => fault.includes('blank'))).toEqual(
        // OpenAI takes back its own items as they were.
        model.startsWith('openai/gpt-5') && text !== '' ? ['text is blank'] : [],
      );
      expect(JSON.stringify(body)).toContain('(no output)');
    },
  );

  it('takes the question after one that was not answered, and never reads why it was not', async () => {
    const failed: Task = {
      id: 'task-0',
      contextId: 'context-1',
      status: {
        state: FAILED,
        message: {
          ...agentMessage({ id: 'task-0', contextId: 'context-1' }, 'm', [textPart('no quota')]),
          role: Role.ROLE_AGENT,
        },
        timestamp: undefined,
      },
      history: [userMessage('first question')],
      artifacts: [],
      metadata: undefined,
    };
    bench.provider.reply({ text: 'ok' });
    const earlierTasks = () => Promise.resolve([failed]);
    const { status } = summaryOf(
      await bench.run(bench.turn({ model, ...more }, { earlierTasks }, 'second one')),
    );
    expect(status).toEqual({ state: COMPLETED });
    const { body } = await bench.provider.request(1);
    expect(faultsIn(body)).toEqual([]);
    expect(JSON.stringify(body)).toMatch(/first question.*second one/);
    expect(JSON.stringify(body)).not.toContain('no quota');
  });
});

it('a file that is gone does not spoil the task that an earlier turn has begun', async () => {
  bench.tools.push(toolOf('write', () => 'written', { needsApproval: true }));
  bench.provider.reply({ calls: [{ name: 'write', input: { city: 'Bern' } }] }, { text: 'Done.' });
  const server = createServer((_, response) => response.setHeader('content-type', 'image/png').end('PNG'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const value = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.png`;
  const file = { ...raw('', ''), content: { $case: 'url' as const, value } };
  const dialogue = new Dialogue(bench);
  await dialogue.say([textPart('write it down'), file]);
  server.close();
  server.closeAllConnections();
  const answer = jsonPart({ approval: { callId: 'call-1-1', approved: true } });
  expect((await dialogue.say([answer])).state).toBe(COMPLETED);
  expect(JSON.stringify((await bench.provider.request(2)).body)).toContain(
    '(a file that is gone: The file at 127.0.0.1',
  );
});
