import { TaskState } from '@baton/a2a';
import type { AgentOutput } from '../../agent-runtime.js';
import { Elsewhere, answerIn, counted, endOf, turnAt } from '../../../../../test/support/agents/remote.js';
import {
  firstTurn,
  MemoryJournal,
  summary,
  turnWith,
  userMessage,
} from '../../../../../test/support/agents/turns.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;
const elsewhere = new Elsewhere();

afterEach(() => elsewhere.killAll());
afterAll(() => elsewhere.close());

const SPOKEN = [
  { version: '1.0', binding: 'JSONRPC' },
  { version: '0.3', binding: 'JSONRPC' },
  { version: '1.0', binding: 'HTTP+JSON' },
] as const;

describe.each(SPOKEN)('an agent elsewhere with $version over $binding', ({ version, binding }) => {
  it('is relayed chunk by chunk, under our ids', async () => {
    const remote = await elsewhere.start({ version, binding });
    const outputs = await elsewhere.run(turnAt(remote.url, 'count 3'));
    expect(summary(outputs)).toEqual([
      { artifact: 'answer', append: false, lastChunk: false, text: '1 ' },
      { artifact: 'answer', append: true, lastChunk: false, text: '2 ' },
      { artifact: 'answer', append: true, lastChunk: true, text: '3 ' },
      { state: COMPLETED },
    ]);
    const [task] = remote.tasks;
    const said = JSON.stringify(outputs);
    expect(said).not.toContain(task?.id);
    expect(said).not.toContain(task?.contextId);
    for (const { value } of outputs)
      expect(value).toMatchObject({ taskId: 'task-1', contextId: 'context-1' });
    expect(remote.asked.at(-1)).toMatchObject({
      headers: { 'a2a-version': version },
      params: { message: { messageId: 'run-m-1' } },
    });
  });

  it.each([true, false])('gets the members of the caller’s request (streaming: %s)', async (streaming) => {
    const remote = await elsewhere.start({ version, binding, streaming });
    const configuration = {
      acceptedOutputModes: ['text/markdown'],
      historyLength: 3,
      returnImmediately: true,
      taskPushNotificationConfig: {
        tenant: '',
        id: 'hook',
        taskId: '',
        url: 'https://hooks.example',
        token: 'hunter2',
        authentication: undefined,
      },
    };
    const details = { metadata: { tone: 'formal', 'baton.approver': { name: 'Eve' } }, configuration };
    const message = userMessage('hi', {
      metadata: { 'baton.sender': 'agent', 'baton.approver': {}, own: 1 },
    });
    const { agent } = turnAt(remote.url, 'hi');
    await elsewhere.run(firstTurn(message, { agent, details }));
    const [{ params }] = remote.asked.filter(({ params: sent }) => sent.message) as [
      (typeof remote.asked)[0],
    ];
    expect(params).toMatchObject({
      metadata: { tone: 'formal' },
      configuration: { acceptedOutputModes: ['text/markdown'] },
      message: { metadata: { 'baton.sender': 'agent', own: 1 } },
    });
    expect(JSON.stringify(params)).not.toMatch(/approver|hunter2|hook|historyLength/);
    const kept = turnAt(remote.url, 'hi', { forward: { metadata: false } });
    await elsewhere.run({ ...kept, details });
    expect(JSON.stringify(remote.asked.at(-1)?.params)).not.toContain('formal');
  });

  it('may answer with a bare message', async () => {
    const remote = await elsewhere.start({ version, binding });
    expect(summary(await elsewhere.run(turnAt(remote.url, 'reply')))).toEqual([
      { message: 'You said: reply' },
    ]);
  });

  it('may not stream: it is asked how the task stands', async () => {
    const remote = await elsewhere.start({ version, binding, streaming: false });
    remote.executor.holdAfter(2);
    const outputs = elsewhere.say(turnAt(remote.url, 'count 4'));
    const all: AgentOutput[] = [];
    for await (const output of outputs) {
      all.push(output);
      remote.executor.release();
    }
    expect(answerIn(all)).toBe(counted(4));
    expect(endOf(all)).toEqual({ state: COMPLETED });
    expect(remote.methods.join()).not.toMatch(/stream|subscribe/i);
  });

  it('may fail, with its reason', async () => {
    const remote = await elsewhere.start({ version, binding });
    expect(endOf(await elsewhere.run(turnAt(remote.url, 'fail')))).toEqual({
      state: FAILED,
      text: 'The scales are broken',
    });
  });

  it.each([
    ['ask', TaskState.TASK_STATE_INPUT_REQUIRED],
    ['sign in', TaskState.TASK_STATE_AUTH_REQUIRED],
  ])('may want something first (%s), and goes on with the answer', async (script, state) => {
    const remote = await elsewhere.start({ version, binding });
    const journal = new MemoryJournal('run-m-1');
    const first = turnAt(remote.url, script, {}, { journal });
    expect(endOf(await elsewhere.run(first))).toEqual({ state, text: 'Which one?' });
    const history = [userMessage(script), userMessage('the red one', { messageId: 'm-2' })];
    const later = new MemoryJournal('run-m-2');
    later.entries.push(...journal.entries);
    const { agent } = first;
    const outputs = await elsewhere.run(turnWith(history, { agent, journal: later, runId: 'run-m-2' }));
    expect(answerIn(outputs)).toBe('the red one');
    expect(endOf(outputs)).toEqual({ state: COMPLETED });
    expect(remote.tasks).toHaveLength(1);
  });

  it('loses and doubles nothing when connections break', async () => {
    const remote = await elsewhere.start({ version, binding });
    const subscribe = version === '1.0' ? 'SubscribeToTask' : 'tasks/resubscribe';
    const all: AgentOutput[] = [];
    const cuts = [2, 5];
    remote.executor.holdAfter(2);
    for await (const output of elsewhere.say(turnAt(remote.url, 'count 9'))) {
      all.push(output);
      // The SDK's server may lose a chunk between two connections; at the end there must be all.
      if (!answerIn(all).endsWith(`${cuts[0]} `)) continue;
      cuts.shift();
      remote.cutConnections();
      const next = cuts[0] ?? Infinity;
      void remote.wasAsked(subscribe, 2 - cuts.length).then(() => remote.executor.holdAfter(next));
    }
    expect(answerIn(all)).toBe(counted(9));
    expect(endOf(all)).toEqual({ state: COMPLETED });
  });

  it('may ask and then reply with a bare message', async () => {
    const remote = await elsewhere.start({ version, binding });
    const journal = new MemoryJournal('run-m-1');
    const turn = turnAt(remote.url, 'ask, then reply', {}, { journal });
    await elsewhere.run(turn);
    const history = [...turn.task.history, userMessage('red', { messageId: 'm-2' })];
    const { agent } = turn;
    expect(summary(await elsewhere.run(turnWith(history, { agent, journal })))).toEqual([
      { message: 'You said: ask, then reply' },
    ]);
  });

  it.each(['twice', 'no snapshot', 'unknown method'] as const)(
    'ends with the whole truth even where subscribing is done badly (%s)',
    async (mishap) => {
      if (mishap === 'unknown method' && binding !== 'JSONRPC') return;
      const remote = await elsewhere.start({ version, binding });
      const subscribe = version === '1.0' ? 'SubscribeToTask' : 'tasks/resubscribe';
      remote.spoil(subscribe, mishap === 'unknown method' ? { error: -32601 } : mishap);
      remote.executor.holdAfter(2);
      const all: AgentOutput[] = [];
      for await (const output of elsewhere.say(turnAt(remote.url, 'count 6'))) {
        all.push(output);
        if (answerIn(all) !== counted(2)) continue;
        remote.cutConnections();
        void remote.wasAsked(subscribe).then(() => remote.executor.release());
      }
      expect(answerIn(all)).toBe(counted(6));
      expect(endOf(all)).toEqual({ state: COMPLETED });
    },
  );

  it('goes on after a restart in mid-stream', async () => {
    let remote = await elsewhere.start({ version, binding });
    const all: AgentOutput[] = [];
    remote.executor.holdAfter(4);
    for await (const output of elsewhere.say(turnAt(remote.url, 'count 8'))) {
      all.push(output);
      if (answerIn(all) !== counted(4) || elsewhere.started.length > 1) continue;
      await remote.kill();
      remote = await elsewhere.restart(remote);
    }
    expect(answerIn(all)).toBe(counted(8));
    expect(endOf(all)).toEqual({ state: COMPLETED });
  });

  it('gets a cancel', async () => {
    const remote = await elsewhere.start({ version, binding });
    const stop = new AbortController();
    for await (const output of elsewhere.say(turnAt(remote.url, 'wait'), stop.signal)) {
      expect(summary([output])).toEqual([{ state: TaskState.TASK_STATE_WORKING, text: 'I wait' }]);
      stop.abort('canceled');
    }
    expect(remote.tasks[0]?.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
  });
});
