import { type Task, TaskState } from '@baton/a2a';
import { setImmediate } from 'node:timers/promises';
import { Disk } from '../../../../../test/support/remote-agent/surviving-tasks.js';
import type { AgentOutput } from '../../agent-runtime.js';
import { Elsewhere, answerIn, counted, endOf, turnAt } from '../../../../../test/support/agents/remote.js';
import { MemoryJournal, collect, summary } from '../../../../../test/support/agents/turns.js';

const { TASK_STATE_FAILED: FAILED } = TaskState;
const elsewhere = new Elsewhere();

afterEach(() => elsewhere.killAll());
afterAll(() => elsewhere.close());

const stateOf = (task: Task | undefined) => task?.status?.state;

describe('a turn of an agent elsewhere', () => {
  it('is taken up by another attempt where the dead one was, without sending again', async () => {
    const remote = await elsewhere.start();
    remote.executor.holdAfter(3);
    const journal = new MemoryJournal();
    const turn = turnAt(remote.url, 'count 6', {}, { journal });
    const died = new AbortController();
    const first: AgentOutput[] = [];
    for await (const output of elsewhere.say(turn, died.signal)) {
      first.push(output);
      if (answerIn(first) === counted(3)) died.abort('lease-lost');
    }
    remote.executor.release();
    const second = await elsewhere.run({ ...turn, attempt: 2 });
    expect(answerIn(second)).toBe(counted(6));
    expect(second[0]).toMatchObject({ $case: 'artifactUpdate', value: { append: false } });
    expect(remote.methods.filter((method) => method === 'SendStreamingMessage')).toHaveLength(1);
    expect(remote.methods).not.toContain('CancelTask');
  });

  it('is canceled although the task’s id was not known yet', async () => {
    const remote = await elsewhere.start({ streaming: false });
    const stop = new AbortController();
    const outputs = collect(elsewhere.say(turnAt(remote.url, 'wait'), stop.signal));
    await remote.wasAsked('SendMessage');
    stop.abort('canceled');
    await outputs;
    expect(stateOf(remote.tasks[0])).toBe(TaskState.TASK_STATE_CANCELED);
  });

  it('has no more output after a cancel, although the rest has come', async () => {
    const remote = await elsewhere.start();
    const stop = new AbortController();
    const outputs = elsewhere.say(turnAt(remote.url, 'count 6'), stop.signal);
    const said: AgentOutput[] = [];
    for await (const output of outputs) {
      said.push(output);
      while (stateOf(remote.tasks[0]) !== TaskState.TASK_STATE_COMPLETED) await setImmediate();
      stop.abort('canceled');
    }
    expect(said).toHaveLength(1);
  });

  it('is not canceled at the remote agent when its worker shuts down', async () => {
    const remote = await elsewhere.start();
    const stop = new AbortController();
    for await (const _ of elsewhere.say(turnAt(remote.url, 'wait'), stop.signal)) stop.abort('shutdown');
    expect(remote.methods).not.toContain('CancelTask');
  });

  it('is canceled at the other server when its reader leaves, or when it takes too long', async () => {
    const remote = await elsewhere.start();
    for await (const _ of elsewhere.say(turnAt(remote.url, 'wait'))) break;
    const canceled = () => remote.tasks.filter((task) => stateOf(task) === TaskState.TASK_STATE_CANCELED);
    // A slow machine may need longer to begin, and to learn which task has begun.
    for (let seconds = 0.3; canceled().length < 2; seconds *= 2) {
      const outputs = await elsewhere.run(turnAt(remote.url, 'wait', { timeout: `${seconds}s` }));
      expect(endOf(outputs)).toMatchObject({
        state: FAILED,
        text: expect.stringContaining(`within ${seconds} s`) as string,
      });
    }
    expect(canceled()).toEqual([remote.tasks[0], remote.tasks.at(-1)]);
  });

  it('fails when there is no progress for too long', async () => {
    const remote = await elsewhere.start();
    let said: ReturnType<typeof summary> = [];
    // A slow machine may need longer for the first event as well.
    for (let seconds = 0.3; said.length < 2; seconds *= 2) {
      said = summary(await elsewhere.run(turnAt(remote.url, 'wait', { stall: `${seconds}s` })));
    }
    expect(said[0]).toMatchObject({ text: 'I wait' });
    expect(said[1]).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('no news of the task') as string,
    });
  });

  it('fails plainly when a restart has lost the task', async () => {
    const remote = await elsewhere.start();
    remote.executor.holdAfter(1);
    const all: AgentOutput[] = [];
    for await (const output of elsewhere.say(turnAt(remote.url, 'count 2'))) {
      all.push(output);
      if (all.length > 1) continue;
      await remote.kill();
      await elsewhere.restart(remote, { disk: new Disk() });
    }
    expect(endOf(all)).toMatchObject({
      state: FAILED,
      text: expect.stringMatching(
        /^The agent at 127.+ no longer knows the task: it may have lost it/,
      ) as string,
    });
  });

  it('fails plainly when the agent stays away', async () => {
    const remote = await elsewhere.start();
    remote.executor.holdAfter(1);
    const all: AgentOutput[] = [];
    for await (const output of elsewhere.say(turnAt(remote.url, 'count 2', { reconnect: '300ms' }))) {
      all.push(output);
      if (all.length === 1) await remote.kill();
    }
    expect(endOf(all)).toMatchObject({
      text: expect.stringContaining('it refused the connection') as string,
    });
  });

  it('goes on in the context of the conversation', async () => {
    const remote = await elsewhere.start();
    const journal = new MemoryJournal();
    const turn = turnAt(remote.url, 'one', {}, { journal });
    await elsewhere.run(turn);
    const earlier = { ...turn.task, id: 'task-0' };
    const next = new (class extends MemoryJournal {
      override read = (taskId?: string) =>
        Promise.resolve(taskId === 'task-0' ? journal.entries : this.entries);
    })('run-2');
    const { agent } = turn;
    await elsewhere.run({
      ...turn,
      agent,
      journal: next,
      runId: 'run-2',
      earlierTasks: async () => [earlier],
    });
    const [first, second] = remote.tasks;
    expect(second?.contextId).toBe(first?.contextId);
    expect(second?.id).not.toBe(first?.id);
  });

  it('sends its message again when it cannot have arrived, and when it may have', async () => {
    const remote = await elsewhere.start();
    for (const mishap of [503, 'cut before', 429] as const) remote.spoil('SendStreamingMessage', mishap);
    expect(answerIn(await elsewhere.run(turnAt(remote.url, 'hi')))).toBe('hi');
    const ids = remote.asked.flatMap(({ params }) => params.message?.messageId ?? []);
    expect(ids).toEqual(Array(4).fill('run-m-1'));
  });

  it('does not send again what may have arrived where that must never be', async () => {
    const remote = await elsewhere.start();
    remote.spoil('SendStreamingMessage', 503);
    remote.spoil('SendStreamingMessage', 'cut after');
    const turn = turnAt(remote.url, 'hi', { repeat: 'never' });
    const reason = { state: FAILED, text: expect.stringContaining('it is not sent again') as string };
    expect(endOf(await elsewhere.run(turn))).toMatchObject(reason);
    expect(endOf(await elsewhere.run({ ...turn, attempt: 2 }))).toMatchObject(reason);
    expect(remote.tasks).toHaveLength(1);
  });
});
