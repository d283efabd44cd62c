import type { Environment } from '@baton/config';
import { Role } from '@baton/a2a';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstTurn, agent } from '../../../../../test/support/agents/turns.js';
import { plainTextPart } from '../../agent-runtime.js';
import { llmConfig } from '../llm/llm-config.js';
import { UndecidedCall } from '../llm/tools/undecided-call.js';
import type { ToolCallContext } from '../llm/tools/tool-sources.js';
import { AgentCrash } from './agent-crash.js';
import { AgentError } from './agent-error.js';
import type { AgentPools } from './agent-pools.js';
import { FunctionTools } from './function-tools.js';
import type { FunctionCall } from './tool-call-request.js';

/** What a process answers: a result, an error, or `none is free`. */
type Answer = object | Error | 'none is free';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'baton-functions-'));
  mkdirSync(join(folder, 'clerk/tools'), { recursive: true });
  writeFileSync(join(folder, 'clerk/tools/pay.mjs'), '');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The tool of an agent whose process gives these answers, one after the other. */
async function payTool(answers: Answer[], declared: object = {}, timeout = '60s') {
  const asked: FunctionCall[] = [];
  const pool = {
    tools: () =>
      Promise.resolve([
        {
          name: 'pay',
          description: 'pays',
          inputSchema: { type: 'object' },
          needsApproval: false,
          ...declared,
        },
      ]),
    open: (
      request: { message: { parts: { text: string }[] } },
      _: unknown,
      __: unknown,
      signal: AbortSignal,
    ) => {
      asked.push(JSON.parse(request.message.parts[0]!.text) as FunctionCall);
      const answer = answers.shift();
      if (answer === 'none is free')
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined)));
      const error = answer instanceof Error ? answer : undefined;
      return Promise.resolve({
        async *sent() {
          if (!error) yield { output: { $case: 'message', value: messageOf(answer) } };
        },
        throwIfFailed: () => {
          if (error) throw error;
        },
        cancel: () => undefined,
        close: () => undefined,
      });
    },
  };
  const pools = { poolFor: () => ({ pool }) } as unknown as AgentPools;
  const turn = firstTurn('hi', { agent: { ...agent('clerk', 'llm'), origin: 'installed' } });
  const config = llmConfig({ model: 'openai/m', functions: { timeout } });
  const source = new FunctionTools({ agentsDir: folder } as Environment, pools);
  const { tools } = await source.open(turn, config, new AbortController().signal);
  const call = { id: 'call-1-1', key: 'k', signal: new AbortController().signal } as ToolCallContext;
  return {
    asked,
    tool: tools[0]!,
    execute: () => tools[0]!.execute({}, call),
    verify: () => tools[0]!.verify!({}, call),
  };
}

const messageOf = (value: unknown) => ({
  role: Role.ROLE_AGENT,
  parts: [plainTextPart(JSON.stringify(value))],
});
const died = () => new AgentCrash('the process died', { name: 'AgentCrash', message: '' }, false);
const broken = () => new AgentError({ name: 'Error', message: 'the bank is closed' });
const CHECKED = { onUnknown: 'ask', verifies: true };

describe('a call of a function', () => {
  it('did not begin if no process was free in time: no person is asked about it', async () => {
    const { execute } = await payTool(['none is free'], { onUnknown: 'ask', verifies: false }, '20ms');
    expect(await execute()).toEqual({
      ok: false,
      content: 'The tool "pay" was not called. No process was free within 0.02 s.',
    });
  });

  it('asks a person if its process has died, unless it can look itself', async () => {
    const blind = await payTool([died()], { onUnknown: 'ask', verifies: false });
    await expect(blind.execute()).rejects.toBeInstanceOf(UndecidedCall);
    expect(blind.tool.verify).toBeUndefined();
    const found = await payTool([died(), { done: true, result: 'paid' }], CHECKED);
    expect(await found.execute()).toMatchObject({ ok: true, content: 'paid' });
    expect(found.asked.map(({ key, verifies }) => [key, verifies])).toEqual([
      ['k', undefined],
      ['k', true],
    ]);
    const absent = await payTool([died(), { done: false }], CHECKED);
    expect(await absent.execute()).toEqual({
      ok: false,
      content: 'The tool "pay" was not carried out. the process died.',
    });
  });

  it('of a worker that has died is looked up, or else decided by the setting of its author', async () => {
    const look = async (answer: Answer, onUnknown: string) =>
      (await payTool([answer], { onUnknown, verifies: true })).verify();
    expect(await look({ done: true, result: 1 }, 'ask')).toMatchObject({ ok: true, content: 1 });
    expect(await look({ done: false }, 'fail')).toBeUndefined();
    await expect(look(broken(), 'ask')).rejects.toBeInstanceOf(UndecidedCall);
    expect(await look(broken(), 'fail')).toMatchObject({
      ok: false,
      content: expect.stringContaining('is not known'),
    });
    expect(await look(died(), 'repeat')).toBeUndefined();
  });
});
