import { agentMessage, dataPart, type Scope, TaskState, textPart } from '@baton/a2a';
import {
  type ClaimedRun,
  Database,
  RunStore,
  type Tenant,
  TenantStore,
  WorkerStore,
  PLATFORM_ACTOR,
} from '@baton/database';
import { TokenService } from '@baton/identity';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { chunk, status } from '../../../libs/database/src/stores.fixture.js';
import type { Json } from '../../api/src/admin/admin-api.fixture.js';
import { app, url } from './operator.fixture.js';
import { run } from './program.js';

// No worker runs here: the tests play its part, so they know what is in each log.

/** What is between two columns. The indent of a span is of its column. */
const COLUMNS = /(?<=\S) {2,}/;

let tenant: Tenant;
let token: string;
const get = <T>(type: new (...args: never[]) => T): T => app.get(type, { strict: false });
const tokenFor = async (scopes: Scope[]): Promise<string> =>
  (
    await get(TokenService).issue(
      { tenantId: tenant.id, name: 'cli', scopes, expiresAt: null },
      PLATFORM_ACTOR,
    )
  ).secret;

beforeAll(async () => {
  tenant = await get(TenantStore).create('cli', PLATFORM_ACTOR);
  token = await tokenFor(['admin']);
});

async function baton(line: string, by = token) {
  const [out, err]: [string[], string[]] = [[], []];
  const terminal = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) };
  const source = { BATON_HOME: '/nowhere', BATON_URL: url, BATON_TOKEN: by };
  const code = await run(line.split(' '), { source, terminal, stdin: () => Readable.from([]) });
  return { code, out: out.join('\n'), err: err.join('\n') };
}
const json = async <T = Json>(line: string): Promise<T> => {
  const { code, out, err } = await baton(`${line} --json`);
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out) as T;
};

async function makeTask(text = 'hello'): Promise<string> {
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] };
  const response = await fetch(`${url}/agents/echo/message:send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ message, configuration: { returnImmediately: true } }),
  });
  const { task } = (await response.json()) as { task: { id: string } };
  return task.id;
}

/** Claims the run of a task, as a worker does. The log has two events then. */
async function claim(taskId: string): Promise<ClaimedRun> {
  // Without workers there are few dispatch slots: it may still wait for one.
  const text = `UPDATE runs SET enqueued_at = now() WHERE task_id = '${taskId}' AND state = 'queued' RETURNING id::text`;
  const [row] = await get(Database).systemQuery<{ id: string }>({ text }, []);
  return (await get(RunStore).claim(tenant.id, row!.id, 'worker', 60_000))!;
}

async function makeEnded(state: TaskState, said?: string): Promise<string> {
  const id = await makeTask();
  const run = await claim(id);
  const message = said === undefined ? undefined : agentMessage(run.snapshot.task, 'm', [textPart(said)]);
  await get(RunStore).append(run, {
    afterSequence: 2,
    events: [chunk(run, 'hello', false), status(run, state, message)],
    metadata: { 'baton.usage': { inputTokens: 7, outputTokens: 5 } },
    end: { state, outcome: null, artifacts: undefined },
  });
  return id;
}

/** A task that waits for approval of one call. */
async function makeAsking(call: string, more: object = {}): Promise<string> {
  const id = await makeTask();
  const run = await claim(id);
  const approval = {
    callId: call,
    tool: 'issues_close',
    description: 'Closes it.',
    input: { issue: 7 },
    ...more,
  };
  const state = TaskState.TASK_STATE_INPUT_REQUIRED;
  const message = agentMessage(run.snapshot.task, 'm', [textPart('May I?'), dataPart({ approval })]);
  await get(RunStore).append(run, {
    afterSequence: 2,
    events: [status(run, state, message)],
    end: { state, outcome: null, artifacts: undefined },
  });
  return id;
}

/** A line of a log: when the event was stored, to the second and with the zone, then the event. */
const timed = (event: string): string =>
  expect.stringMatching(
    `^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d [+-]\\d\\d:\\d\\d {5}${event}$`,
  ) as string;

describe('baton tasks', () => {
  it('lists tasks by state, agent and time, the newest status first', async () => {
    const done = await makeEnded(TaskState.TASK_STATE_COMPLETED);
    const failed = await makeEnded(TaskState.TASK_STATE_FAILED, 'no luck');
    const ids = async (more: string): Promise<string[]> =>
      (await json<Json[]>(`tasks list ${more}`)).map(({ request_id: id }) => id as string);
    expect(await ids('--since 1h')).toEqual([failed, done]);
    expect(await ids('--state failed --agent echo')).toEqual([failed]);
    expect(await ids('--since 2099-01-01T00:00:00Z')).toEqual([]);
    expect(await ids('--since 1h --until 2099-01-01T00:00:00Z')).toEqual([failed, done]);
    expect(await ids('--until 1h')).toEqual([]);
    expect(await ids('--limit 1')).toEqual([failed]);
    const { out } = await baton('tasks list --state failed');
    expect(out).toMatch(
      new RegExp(
        `^TASK +AGENT +STATE +UPDATED +CONTEXT +REASON\\n${failed}  echo +failed +\\d{4}-.*[+-]\\d\\d:\\d\\d  \\S+ +no luck$`,
      ),
    );
    expect((await baton('tasks list --search LUCK')).out).toMatch(/FOUND IN\n.* status message: no luck$/);
    expect(await baton('tasks list --agent nobody')).toMatchObject({ code: 3, out: '' });
    expect(await baton('tasks list --state done')).toMatchObject({ code: 1, out: '' });
    expect((await baton('tasks list --since soon')).code).toBe(2);
    expect((await baton('tasks list --until soon')).err).toContain('--until: "soon" is neither');
    expect((await baton('tasks list --since 1h --until 2h')).err).toContain(
      'until: must be later than `since`',
    );
    expect((await baton('tasks list --limit 0')).code).toBe(2);
  });

  it('shows a task, and ends with a code for one that is not there', async () => {
    const id = await makeEnded(TaskState.TASK_STATE_COMPLETED);
    expect((await baton(`tasks show ${id}`)).out).toMatch(
      /^task +[-\da-f]{36}\nagent +echo\nstate +completed\ncreated +\d[^\n]*\n[^]*events +4\ntokens +7 input, 5 output\n\nhello\n\n/,
    );
    const events = (await baton(`tasks show ${id}`)).out.split('\n').slice(-4);
    expect(events).toEqual([
      timed(`1  task      ${id} submitted`),
      timed('2  status    working'),
      timed('3  artifact  reply: hello'),
      timed('4  status    completed'),
    ]);
    expect(await json(`tasks show ${id}`)).toMatchObject({ request_id: id, events: 4, task: { id } });
    const trace = (await baton(`tasks trace ${id}`)).out.split('\n').map((line) => line.split(COLUMNS));
    expect(trace.map(([span, , , state]) => [span, state])).toEqual([
      ['SPAN', 'STATE'],
      ['turn 1', 'succeeded'],
      ['  queue 1', 'succeeded'],
      ['  attempt 1', 'succeeded'],
    ]);
    const spansOf = (out: string) =>
      out
        .split('\n')
        .slice(1)
        .map((line) => line.split(COLUMNS)[0]);
    expect(spansOf((await baton(`tasks trace ${id} --grep QUEUE`)).out)).toEqual(['turn 1', '  queue 1']);
    expect(spansOf((await baton(`tasks trace ${id} --kind attempt`)).out)).toEqual(['turn 1', '  attempt 1']);
    expect((await json(`tasks trace ${id} --kind attempt`)).spans).toMatchObject([
      { kind: 'turn' },
      { kind: 'attempt' },
    ]);
    for (const filter of ['--errors', '--slow 1000', '--kind queue --grep turn'])
      expect((await baton(`tasks trace ${id} ${filter}`)).err).toBe('No span of the trace matches.');
    expect((await baton(`tasks trace ${id} --slow never`)).err).toContain('--slow: "never" is not');
    expect((await baton(`tasks trace ${id} --kind cake`)).code).toBe(2);
    const unknown = randomUUID();
    for (const command of ['show', 'trace', 'watch', 'logs', 'cancel', 'resume', 'send-again']) {
      const { code, err } = await baton(`tasks ${command} ${unknown}`);
      expect([command, code, err]).toEqual([
        command,
        3,
        `There is no task "${unknown}", or your token does not see it: npx baton tasks list shows those that it sees.`,
      ]);
    }
    const { code, err } = await baton(`tasks show ${id}`, 'baton_wrong');
    expect([code, err]).toEqual([4, expect.stringMatching(`^Task ${id}: .* refuses the token`)]);
  });

  it('watches a task to its end, and ends as the task does', async () => {
    const done = await makeEnded(TaskState.TASK_STATE_COMPLETED);
    const { code, out } = await baton(`tasks watch ${done} --after 1`);
    expect([code, out.split('\n')]).toEqual([
      0,
      [timed('2  status    working'), timed('3  artifact  reply: hello'), timed('4  status    completed')],
    ]);
    const records = (await baton(`tasks watch ${done} --after 3 --json`)).out;
    expect(JSON.parse(records)).toMatchObject({ sequence: 4, event: { statusUpdate: {} } });
    const failed = await makeEnded(TaskState.TASK_STATE_FAILED, 'no luck');
    expect(await baton(`tasks watch ${failed} --after 3`)).toEqual({
      code: 6,
      out: timed('4  status    failed: no luck'),
      err: `Task ${failed} failed: no luck`,
    });
    const canceled = await makeTask();
    const watching = baton(`tasks watch ${canceled}`);
    expect((await baton(`tasks cancel ${canceled}`)).out).toBe(`Task ${canceled} is canceled.`);
    expect(await watching).toMatchObject({ code: 7, err: expect.stringContaining(canceled) as string });
  });

  it('prints the log of a running task so far, with times, and does not wait for more', async () => {
    const id = await makeTask();
    await claim(id);
    const { code, out } = await baton(`tasks logs ${id}`);
    expect(code).toBe(0);
    const time = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d/.source;
    expect(out).toMatch(
      new RegExp(`${time}     1  task +${id} submitted\\n${time.slice(1)}     2  status +working$`),
    );
    const ended = (await baton(`tasks logs ${await makeEnded(TaskState.TASK_STATE_COMPLETED)}`)).out;
    expect(ended).toMatch(new RegExp(`\\n${time.slice(1)}     3  artifact  reply: hello\\n`));
    const lines = (await baton(`tasks logs ${id} --after 1 --json`)).out.split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { sequence: number }).sequence)).toEqual([2]);
    expect((await baton(`tasks logs ${id} --after 2`)).out).toBe('');
  });

  it.each([
    ['NO_COLOR', '1'],
    ['FORCE_COLOR', '1'],
  ])('has no colours, with %s=%s neither', async (name, value) => {
    const environment = jest.replaceProperty(process, 'env', { ...process.env, [name]: value });
    try {
      const id = await makeEnded(TaskState.TASK_STATE_FAILED, 'no luck');
      for (const command of [
        'list',
        `show ${id}`,
        `watch ${id}`,
        `logs ${id}`,
        'list --state done',
        '--help',
      ]) {
        const { out, err } = await baton(`tasks ${command}`);
        expect([command, out + err]).toEqual([command, expect.not.stringContaining('\u001b')]);
      }
    } finally {
      environment.restore();
    }
  });

  it('cancels tasks, and names the one that cannot be canceled', async () => {
    const [first, second] = [await makeTask(), await makeTask()];
    const ended = await makeEnded(TaskState.TASK_STATE_COMPLETED);
    expect(await json(`tasks cancel ${first} ${second}`)).toEqual(
      [first, second].map((id) => ({ task_id: id, request_id: id, cancelled: true })),
    );
    const { code, err } = await baton(`tasks cancel ${ended}`);
    expect([code, err]).toEqual([1, expect.stringMatching(`^Task ${ended}: The task has ended`)]);
  });

  it('sends the first message again, as a new task of the same agent and context', async () => {
    const id = await makeEnded(TaskState.TASK_STATE_FAILED);
    const made = await json(`tasks send-again ${id}`);
    expect(made).toMatchObject({ again_of: id, agent_id: 'echo', state: 'submitted' });
    const [before, again] = [
      await json(`tasks show ${id}`),
      await json(`tasks show ${String(made.request_id)}`),
    ];
    expect(again.request_id).not.toBe(id);
    expect(again.context_id).toBe(before.context_id);
    const { messageId: _, ...said } = again.task.history[0] as Json;
    expect(said).toMatchObject({ parts: [{ text: 'hello' }], referenceTaskIds: [id] });
    // Each call makes one, and who may only read cannot.
    expect((await json(`tasks send-again ${id}`)).request_id).not.toBe(made.request_id);
    expect((await baton(`tasks send-again ${id}`, await tokenFor(['tasks:read']))).code).toBe(4);
  });
});

describe('baton tasks waiting', () => {
  it('lists the questions and calls that the token may answer, the oldest first', async () => {
    const call = await makeAsking('call-1');
    const question = await makeEnded(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which\none?');
    const { code, out, err } = await baton('tasks waiting');
    expect(code).toBe(0);
    expect(out).toMatch(
      new RegExp(`\\n${call} +echo +\\S+ \\S+ \\S+ +- +approval +issues_close {"issue":7}\\n`),
    );
    expect(out).toMatch(new RegExp(`\\n${question} +echo .* answer +Which one\\?`));
    expect(err).toContain('npx baton approvals approve <task>');
    const found = await json<Json[]>('tasks waiting --limit 1');
    expect(found).toMatchObject([{ task_id: call, approvals: [{ call_id: 'call-1' }] }]);
    const caller = await tokenFor(['agents:call', 'tasks:read', 'tasks:write']);
    expect((await baton('tasks waiting', caller)).out).not.toContain(call);
    expect((await baton('tasks waiting', await tokenFor(['agents:call']))).err).toBe(
      'No task waits for you.',
    );
    expect((await baton('tasks waiting', await tokenFor(['tasks:read']))).code).toBe(4);
    await baton(`tasks cancel ${call} ${question}`);
  });
});

describe('baton approvals', () => {
  it('lists what waits, and answers only that', async () => {
    const [id, other] = [await makeAsking('call-1'), await makeAsking('call-2')];
    expect((await baton('approvals list')).out).toMatch(
      new RegExp(`\\n${id} +call-1  issues_close  {"issue":7} +Closes it\\. +\\S+ \\S+ \\S+ +- +echo$`, 'm'),
    );
    expect(await json<Json[]>('approvals list')).toMatchObject([{ request_id: other }, { request_id: id }]);
    expect(await baton(`approvals approve ${id} --call call-9`)).toMatchObject({ code: 3, out: '' });
    expect(await baton(`approvals approve ${id} --input 7`)).toMatchObject({ code: 2, out: '' });
    expect(await baton(`approvals approve ${id} --input {"issue":8}`)).toMatchObject({
      code: 0,
      out: `Call call-1 of task ${id} is approved.`,
    });
    const reject = `approvals reject ${other} --call call-2 --reason no`;
    expect(await json(reject)).toEqual({
      task_id: other,
      request_id: other,
      calls: ['call-2'],
      approved: false,
    });
    const answers = await Promise.all(
      [id, other].map(async (task) => ((await json(`tasks show ${task}`)).task.history as Json[]).at(-1)!),
    );
    expect(answers.map(({ parts }) => (parts as Json[])[0]!.data as unknown)).toEqual([
      { approval: { callId: 'call-1', approved: true, input: { issue: 8 } } },
      { approval: { callId: 'call-2', approved: false, reason: 'no' } },
    ]);
    expect((await baton(`tasks trace ${id}`)).out).toMatch(
      /\n\ntoken:\S+ answered at .*:\n {2}Approved with another input issues_close\n {4}issue: 8$/,
    );
    expect((await baton(`tasks trace ${other}`)).out).toMatch(/:\n {2}Rejected issues_close: no$/);
    expect((await baton('approvals list')).err).toBe('No call waits for a person.');
    const question = {
      requestedSchema: { type: 'object', properties: { city: { type: 'string', title: 'City' } } },
    };
    const form = await makeAsking('call-4', { server: 'clerk', agents: ['echo', 'writer'], question });
    expect((await baton('approvals list')).out).toMatch(
      new RegExp(
        `\\n${form} +call-4  issues_close \\(server clerk\\)  form: City  Closes it\\..* echo → writer$`,
      ),
    );
    await baton(`approvals approve ${form} --input {"city":"Bonn"}`);
    expect((await baton(`tasks trace ${form}`)).out).toMatch(/ {2}Answered issues_close\n {4}City: Bonn$/);
    const { code, err } = await baton(`approvals approve ${id}`);
    expect([code, err]).toEqual([1, `Task ${id}: no call of it waits for a person; its state is submitted.`]);
    const asking = await makeAsking('call-3');
    expect(
      (await baton(`approvals approve ${asking}`, await tokenFor(['tasks:read', 'agents:call']))).code,
    ).not.toBe(0);
  });
});

describe('baton usage and status', () => {
  it('sum up the tasks that the token sees', async () => {
    await makeEnded(TaskState.TASK_STATE_FAILED);
    const { usage } = await json<{ usage: Json[] }>('usage --by agent');
    const [{ tasks, failed, input_tokens: input }] = usage as [Record<string, number>];
    expect([usage.length, input! % 7, failed! > 0, tasks! > failed!]).toEqual([1, 0, true, true]);
    expect((await baton('usage')).out).toMatch(
      /^DAY \(UTC\) +TASKS +FAILED +TIME +INPUT TOKENS +OUTPUT TOKENS\n/,
    );
    expect((await baton('usage', await tokenFor(['agents:call']))).err).toBe('There are no such tasks.');
    expect((await baton('usage --by weather')).code).toBe(2);
  });

  it('say whether the server is ready, and what runs', async () => {
    const status = await json('status');
    expect(status).toMatchObject({ url, ready: true, tasks: { submitted: expect.any(Number) as number } });
    expect((await baton('status')).out).toMatch(/^server +http:\S+: ready\nsubmitted +\d+\n/);
    expect((await baton('status', 'baton_wrong')).code).toBe(4);
    expect((await baton('status --url http://127.0.0.1:1')).code).toBe(5);
  });
});

describe('an agent in code that workers could not load', () => {
  it('is named by agents list and status, with file, line and reason', async () => {
    const failure = { slug: 'helper', file: 'helper/index.mjs', line: 3, reason: 'boom', tenants: null };
    const worker = { id: randomUUID(), host: 'w', pid: 7, concurrency: 4 };
    await get(WorkerStore).reportFailures(worker, [failure]);
    const named = 'Agent helper could not be loaded: helper/index.mjs:3: boom';
    expect(await baton('agents list')).toMatchObject({ code: 0, err: named });
    expect(await baton('status')).toMatchObject({ code: 0, err: named });
    expect(await baton('status', await tokenFor(['tasks:read']))).toMatchObject({ code: 0, err: '' });
    await get(WorkerStore).remove(worker.id);
  });
});

describe('baton agents apply', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-apply-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it('names every fault of every file at once, with its line, and writes nothing', async () => {
    const good = write('good.yaml', 'name: Good\ndescription: good\nruntime: echo\n');
    const bad = write(
      'bad.yaml',
      'name: Bad\nruntime: llm\ncolour: red\nconfig:\n  temperature: hot\n  tools:\n    mcp: [{name: a b}]\n',
    );
    const broken = write('broken.yaml', 'name: A\nname: B\ntags: [1\n');
    const { code, out, err } = await baton(`agents apply -f ${good} ${bad} ${broken}`);
    expect([code, out]).toEqual([1, '']);
    const places = err
      .split('\n')
      .map((line) => line.replace(`${folder}/`, '').split(': ').slice(0, 2).join(': '));
    expect(places).toEqual(
      expect.arrayContaining([
        'bad.yaml:1: description',
        'bad.yaml:3: colour',
        'bad.yaml:4: config.model',
        expect.stringMatching(/^bad\.yaml:7: config\.tools\.mcp\[0\]/),
        expect.stringMatching(/^broken\.yaml:2: /),
        expect.stringMatching(/^broken\.yaml:[34]: /),
        'Nothing was written.',
      ]),
    );
    expect(err).not.toContain('good.yaml');
    expect((await baton('agents show good')).code).toBe(3);
  });

  it('warns of agents that there are not, and of commands that are not allowed', async () => {
    const front = write(
      'front.yaml',
      `name: Front
description: asks others
runtime: llm
config:
  model: openai/x
  agents:
    - echo
    - back
    - agent: nope
  tools:
    mcp:
      - name: shell
        command: bash
`,
    );
    const back = write('back.yaml', 'name: Back\ndescription: back\nruntime: echo\n');
    const applied = await baton(`agents apply -f ${front} ${back}`);
    expect([applied.code, applied.out.match(/is created/g)]).toEqual([0, ['is created', 'is created']]);
    expect(applied.err.split('\n')).toEqual([
      `Warning: ${front}:9: config.agents[2]: there is no agent "nope". It fails when the agent runs.`,
      `Warning: ${front}:5: config.model: there is no secret "openai": set it before the agent runs. It fails when the agent runs.`,
      `Warning: ${front}:13: config.tools.mcp[0].command: the operator of this server does not allow the command "bash". It fails when the agent runs.`,
    ]);
  });
});
