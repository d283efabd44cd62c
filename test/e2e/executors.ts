import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { DRIVER } from '../support/nightly.js';
import { type Frame, RawCaller, type RpcAnswer, sendParams } from '../support/raw-caller.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { completes, increasing, textsOf } from '../support/streams.js';
import { until } from '../support/until.js';

const COUNT = 60;
const COUNTED = Array.from({ length: COUNT }, (_, i) => `${i + 1} `);

// Messaging has no part in this: one driver is enough.
const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, BATON_MASTER_KEY: MASTER_KEY, SOMETHING_ELSE: 'of the worker' },
  {
    installAgents: (agents) => {
      for (const name of ['hazard', 'hazard-too', 'hazard-stalls'])
        cpSync(join(__dirname, '../agents', name), join(agents, name), { recursive: true });
    },
  },
);
let stack: Stack;
let tenant: string;
let token: string;
let otherToken: string;

const callerOf = (agent: string, bearer = token): RawCaller => new RawCaller(stack.url(0, agent), bearer);
const ask = (agent: string, text: string): Promise<RpcAnswer> =>
  callerOf(agent).call('SendMessage', sendParams(text));
const stateOf = ({ result }: RpcAnswer): string => result?.task.status.state as string;
const failedTask = ({ error }: RpcAnswer): string =>
  (error?.data as { metadata: { taskId: string } }[])[0]!.metadata.taskId;
const saidBy = ({ result }: RpcAnswer): string => JSON.stringify(result?.task.status.message);
const textOf = ({ result }: RpcAnswer): string => result?.task.artifacts[0].parts[0].text as string;

/** A run that continues for some seconds, and was begun when this resolves. */
async function bystander(agent: string, text: string, metadata: object = {}) {
  const frames: Frame[] = [];
  const stream = callerOf(agent, otherToken).stream('SendStreamingMessage', sendParams(text, { metadata }));
  let begun = (): void => undefined;
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  const follow = async (): Promise<Frame[]> => {
    for await (const frame of stream) {
      frames.push(frame);
      if (frame.data.result?.artifactUpdate) begun();
    }
    return frames;
  };
  const ended = follow();
  await Promise.race([hasBegun, ended]);
  return { ended, taskId: frames[0]?.data.result?.task.id as string };
}

/** An echo, and two executor agents that count. */
const bystanders = () =>
  Promise.all([
    bystander('echo', 'x', { echo: { chunks: COUNT, delayMs: 50 } }),
    bystander('hazard', `count ${COUNT}`),
    bystander('hazard-too', `count ${COUNT}`),
  ]);

async function runsOf(taskId: string): Promise<{ attempt: number; deaths: number }[]> {
  const client = new Client({ connectionString: stack.database.url });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    return (await client.query('SELECT attempt, deaths FROM runs WHERE task_id = $1', [taskId])).rows;
  } finally {
    await client.end();
  }
}

const attemptsOf = async (taskId: string): Promise<number[]> =>
  (await runsOf(taskId)).map(({ attempt }) => attempt);
/** The lines of the worker about a task. */
const logOf = (taskId: string): string[] =>
  stack.workers[0]!.log()
    .split('\n')
    .filter((line) => line.includes(taskId));
const deathsOf = async (taskId: string): Promise<number> => (await runsOf(taskId))[0]!.deaths;

/** A task as `/v1/tasks` shows it to the holder of this token. */
async function request(taskId: string, bearer: string) {
  const url = `${stack.apis[0]!.url}/v1/tasks/${taskId}`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${bearer}` } });
  return (await response.json()) as {
    error: { message: string; stack?: string; output?: string[]; attempt: number } | null;
  };
}

const logs = (taskId: string, bearer: string): Promise<Response> =>
  fetch(`${stack.apis[0]!.url}/v1/tasks/${taskId}/logs`, {
    headers: { authorization: `Bearer ${bearer}` },
  });

interface Line {
  position: number;
  level: string;
  attempt: number;
  text: string;
}

/** The lines of a task's console, as soon as there are so many. */
async function linesOf(taskId: string, bearer: string, count: number): Promise<Line[]> {
  for (;;) {
    const { lines } = (await (await logs(taskId, bearer)).json()) as { lines: Line[] };
    if (lines.length >= count) return lines;
    await delay(100);
  }
}

/** Whether the process runs; one that is dead and not yet collected by its parent does not. */
function isAlive(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !/^\d+ \(.*\) Z/.test(readFileSync(file, 'utf8'));
}

describe('an agent in code', () => {
  beforeAll(async () => {
    stack = await startStack();
    ({ token, slug: tenant } = await stack.createTenant());
    ({ token: otherToken } = await stack.createTenant());
  });

  it('fails its own turn with an error, and no other run notices it', async () => {
    const others = await bystanders();
    for (const way of ['timer', 'rejection', 'exit', 'throw']) {
      const { error } = await ask('hazard', way);
      // The caller reads no more than that.
      expect(error?.message).toBe('The agent stopped with an error; the task has failed');
      expect(JSON.stringify(error)).not.toMatch(/thrown|unhandled on purpose|process\.exit|index\.mjs/);
    }
    expect(stateOf(await ask('hazard', 'late timer'))).toBe('TASK_STATE_COMPLETED');
    for (const { ended, taskId } of others) {
      const frames = await ended;
      expect(completes(frames.at(-1))).toBe(true);
      expect(increasing(frames)).toBe(true);
      expect(textsOf(frames)).toHaveLength(COUNT);
      expect(await attemptsOf(taskId)).toEqual([1]);
    }
  });

  it('may publish what it has received, also the value null', async () => {
    const { message } = sendParams('mirror') as { message: { parts: object[] } };
    const sent = { message: { ...message, parts: [...message.parts, { data: null }] } };
    const { result } = await callerOf('hazard').call('SendMessage', sent);
    expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(result?.task.artifacts[0].parts).toEqual([{ text: 'mirror' }, { data: null }]);
  });

  it('ends its turn as it has said, also if its process ends at that moment', async () => {
    const answer = await ask('hazard', 'exit after the end');
    expect([stateOf(answer), textOf(answer)]).toEqual(['TASK_STATE_COMPLETED', 'last words']);
    expect(await attemptsOf(answer.result?.task.id as string)).toEqual([1]);
  });

  it('takes no other agent with it when its process dies, and is given up for the reason', async () => {
    const [echo, one] = await bystanders();
    const answers = await Promise.all([
      ask('hazard-stalls', 'stall'),
      ...['kill', 'heap', 'buffers'].map((way) => ask('hazard-too', way)),
    ]);
    for (const answer of answers) expect(stateOf(answer)).toBe('TASK_STATE_FAILED');
    const said = answers.map(saidBy);
    expect(said[0]).toMatch(/Given up after 2 attempts.*did not answer for 3 s/);
    expect(said[1]).toMatch(/Given up after 2 attempts.*was ended by SIGKILL/);
    expect(said[2]).toMatch(/Given up after 2 attempts.*more memory than its limit of 64 MiB/);
    expect(said[3]).toMatch(/Given up after 2 attempts.*more memory than its limit of 64 MiB/);
    for (const { ended, taskId } of [echo, one]) {
      expect(textsOf(await ended)).toHaveLength(COUNT);
      const attempts = await attemptsOf(taskId);
      // The log of the worker has the reason of another one.
      expect([attempts, attempts[0] === 1 ? undefined : logOf(taskId)]).toEqual([[1], undefined]);
    }
  });

  it('lets a run that died beside a culprit end well, in a process of its own', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-executors-'));
    const gate = join(folder, 'gate');
    // It does not end before the culprit has struck. Then each of them runs alone, and either may be the first.
    const innocent = await bystander('hazard-too', `count ${COUNT} when ${gate} exists`);
    const culprit = ask('hazard-too', 'kill');
    await until(async () => (await deathsOf(innocent.taskId)) > 0);
    writeFileSync(gate, '');
    expect(stateOf(await culprit)).toBe('TASK_STATE_FAILED');
    expect(textsOf(await innocent.ended)).toEqual(COUNTED);
    expect(await attemptsOf(innocent.taskId)).toEqual([2]);
    rmSync(folder, { recursive: true });
  });

  it('shows its author the error of a run, and others no more than its message', async () => {
    const taskId = failedTask(await ask('hazard', 'throw'));
    const { error } = await request(taskId, token);
    expect(error).toMatchObject({ message: 'thrown by execute', attempt: 1, output: ['about to throw'] });
    expect(error?.stack).toMatch(/RangeError: thrown by execute\n.*hazard\/index\.mjs:\d+/);
    const reader = await stack.createToken(tenant, 'tasks:read');
    expect(Object.keys((await request(taskId, reader)).error ?? {})).not.toContain('stack');
    expect((await request(taskId, reader)).error?.message).toBe('thrown by execute');
    const frames: Frame[] = [];
    for await (const frame of callerOf('hazard').stream('SubscribeToTask', { id: taskId }, 0))
      frames.push(frame);
    expect(JSON.stringify(frames)).not.toMatch(/thrown|index\.mjs/);
  });

  it('sees nothing of the platform in its environment', async () => {
    const names = textOf(await ask('hazard', 'environment')).split(' ');
    expect(names).toContain('PATH');
    expect(names.filter((name) => /DATABASE|REDIS|BATON|SOMETHING/.test(name))).toEqual([]);
  });

  it('activates an extension, which the answer names in its header and its artifact', async () => {
    const text = { parts: [{ text: 'extension' }], role: 'ROLE_USER' };
    const legacy = { kind: 'message', parts: [{ kind: 'text', text: 'extension' }], role: 'user' };
    for (const [version, header, method, message] of [
      ['1.0', 'a2a-extensions', 'SendMessage', text],
      ['0.3', 'x-a2a-extensions', 'message/send', legacy],
    ] as const) {
      const send = (headers: Record<string, string>) => {
        const params = {
          message: { ...message, messageId: randomUUID() },
          configuration: { blocking: true },
        };
        return fetch(stack.url(0, 'hazard'), {
          method: 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            'a2a-version': version,
            ...headers,
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
        });
      };
      const answer = await send({ [header]: 'urn:example:of-nobody' });
      expect([version, answer.headers.get(header)]).toEqual([version, 'urn:example:activated']);
      expect(await answer.text()).toContain('"extensions":["urn:example:activated"]');
      // Who does not know extensions gets no header that he did not ask for.
      expect((await send({})).headers.get(header)).toBeNull();
    }
  });

  it('has what it writes to its console in the log of the worker, with the run', async () => {
    const taskId = failedTask(await ask('hazard', 'throw'));
    // The answer may be faster than the log, which comes through a pipe.
    const line = await until(() => logOf(taskId).find((text) => text.includes('agent wrote')));
    expect(JSON.parse(line)).toMatchObject({ agent: 'hazard', text: 'about to throw' });
  });

  it('has what it writes to its console with its task, also while it works on several', async () => {
    const author = await stack.createToken(tenant, 'tasks:read', 'agents:write');
    const words = ['one', 'two'];
    const answers = await Promise.all([
      callerOf('hazard').call('SendMessage', sendParams('talk one')),
      callerOf('hazard', otherToken).call('SendMessage', sendParams('talk two')),
    ]);
    const [mine, theirs] = answers.map(({ result }) => result?.task.id as string);
    const lines = await linesOf(mine!, author, 9);
    expect(lines.map(({ text, level }) => [text, level])).toEqual([
      ...['debug', 'info', 'warn', 'error', 'debug', 'info', 'warn', 'error'].map((level, i) => [
        `${words[0]} ${i}`,
        level,
      ]),
      ['one to standard error', 'error'],
    ]);
    expect(lines[0]).toMatchObject({ position: 1, attempt: 1 });
    // Neither those who may not change agents nor other tenants, although one process has worked for both.
    const caller = await stack.createToken(tenant, 'tasks:read', 'agents:call');
    expect((await logs(mine!, caller)).status).toBe(403);
    expect((await logs(theirs!, author)).status).toBe(404);
    const target = ['--url', stack.apis[0]!.url, '--token', author];
    const printed = await stack.baton('tasks', 'logs', mine!, '--console', '--follow', ...target);
    expect(printed).toMatch(/  warn   attempt 1  one 2\n/);
    expect(printed).not.toContain('two');
  });

  it('reads the secrets of the tenant that has called, and shows none', async () => {
    const setSecret = (bearer: string, value: string) =>
      fetch(`${stack.apis[0]!.url}/v1/secrets/search`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        body: JSON.stringify({ value, origins: ['agent:hazard'] }),
      });
    expect((await setSecret(token, 'value-of-one')).ok).toBe(true);
    const answer = await ask('hazard', 'secret');
    expect(textOf(answer)).toBe('12: [secret]');
    const [line] = await linesOf(answer.result?.task.id as string, token, 1);
    expect(line?.text).toBe('the secret is [secret]');
    const other = () => callerOf('hazard', otherToken).call('SendMessage', sendParams('secret'));
    expect(textOf(await other())).toContain('node bin/baton.cjs secrets set search --origin agent:hazard');
    await setSecret(otherToken, 'other');
    expect(textOf(await other())).toBe('5: [secret]');
    // A rotated value is there for the next turn.
    await setSecret(token, 'rotated');
    expect(textOf(await ask('hazard', 'secret'))).toBe('7: [secret]');
    expect(stack.workers[0]!.log()).not.toMatch(/value-of-one/);
  });

  it('leaves no process behind when its worker is killed', async () => {
    const pid = Number(textOf(await ask('hazard', 'pid')));
    const tooPid = Number(textOf(await ask('hazard-too', 'pid')));
    expect([pid, tooPid].map(isAlive)).toEqual([true, true]);
    // One of them computes without end.
    void callerOf('hazard-too')
      .call('SendMessage', sendParams('loop'))
      .catch(() => undefined);
    await delay(200);
    await stack.workers[0]!.kill();
    await until(() => ![pid, tooPid].some(isAlive));
  });
});
