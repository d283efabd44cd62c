import { type Artifact, Role, TaskState } from '@baton/a2a';
import type { AgentOutput } from '@baton/agents';
import type { ClaimedRun } from '@baton/database';
import { artifact, claimedRun, message } from './claimed-run.fixture.js';
import { TurnFailure } from '../core/turn-failure.js';
import { TurnOutput } from './turn-output.js';

const status = (state: TaskState, text?: string): AgentOutput => ({
  $case: 'statusUpdate',
  value: {
    taskId: 'wrong',
    contextId: 'wrong',
    status: {
      state,
      message: text === undefined ? undefined : message(text, Role.ROLE_USER),
      timestamp: '1',
    },
    metadata: { seen: true },
  },
});

const chunk = (value: Artifact, append: boolean): AgentOutput => ({
  $case: 'artifactUpdate',
  value: { taskId: '', contextId: '', artifact: value, append, lastChunk: false, metadata: undefined },
});

const withArtifacts = (attempt: number, ...atStart: Artifact[]): ClaimedRun => {
  const { snapshot } = claimedRun();
  const task = { ...snapshot.task, artifacts: atStart };
  return claimedRun({ attempt, artifactsAtStart: atStart, snapshot: { ...snapshot, task } });
};

const updateOf = (output: TurnOutput, said: AgentOutput) => {
  const [entry] = output.entries(said);
  if (entry?.payload.$case !== 'artifactUpdate') throw new Error('no artifact update');
  return entry.payload.value;
};
const textsOf = (value: Artifact | undefined) => value?.parts.map(({ content }) => content?.value as unknown);

describe('TurnOutput', () => {
  it('reminds and escalates a question alone, after the times of the agent', () => {
    const endOf = (state: TaskState, after?: object) => {
      const output = new TurnOutput(claimedRun(), () => undefined);
      output.remind(after);
      return output.entries(status(state))[0]?.end;
    };
    const after = { remindAfterHours: 0.5, escalateAfterHours: 24 };
    const reminders = { remindMs: 1_800_000, escalateMs: 86_400_000 };
    expect(endOf(TaskState.TASK_STATE_INPUT_REQUIRED, after)).toMatchObject({ reminders });
    expect(endOf(TaskState.TASK_STATE_AUTH_REQUIRED, after)).toMatchObject({ reminders });
    expect(endOf(TaskState.TASK_STATE_COMPLETED, after)).not.toHaveProperty('reminders');
    expect(endOf(TaskState.TASK_STATE_INPUT_REQUIRED)).not.toHaveProperty('reminders');
    const late = endOf(TaskState.TASK_STATE_INPUT_REQUIRED, { escalateAfterHours: 1 });
    expect(late?.reminders).toEqual({ remindMs: undefined, escalateMs: 3_600_000 });
  });

  it.each([
    ['artifactId', { artifactId: 'é'.repeat(257) }, '514 bytes, and the maximum is 512'],
    ['name', { name: 'x'.repeat(4097) }, '4097 bytes, and the maximum is 4096'],
  ])('fails a turn whose artifact has a %s that is too long, and names the limit', (field, long, says) => {
    const output = new TurnOutput(claimedRun(), () => undefined);
    const said = chunk({ ...artifact('a', 'text'), ...long }, false);
    expect(() => output.entries(said)).toThrow(TurnFailure);
    expect(() => output.entries(said)).toThrow(`whose ${field} has ${says}`);
    const most = { artifactId: 'é'.repeat(256), name: 'x'.repeat(4096) };
    expect(output.entries(chunk({ ...artifact('a', 'text'), ...most }, false))).toHaveLength(1);
  });

  it('fails a turn whose data or metadata are nested too deep', () => {
    const nested = (levels: number) => {
      let value: Record<string, unknown> = {};
      for (let depth = 1; depth < levels; depth += 1) value = { value };
      return value;
    };
    const merged: object[] = [];
    const output = new TurnOutput(claimedRun(), (added) => merged.push(added));
    const said = (value: Record<string, unknown>): AgentOutput[] => {
      const part = { ...message('', Role.ROLE_AGENT).parts[0]!, content: { $case: 'data' as const, value } };
      const asked = status(TaskState.TASK_STATE_WORKING, 'x');
      if (asked.$case === 'statusUpdate') asked.value.metadata = value;
      const reply = { ...message('', Role.ROLE_AGENT), parts: [part] };
      const task = { ...claimedRun().snapshot.task, metadata: value };
      return [
        asked,
        { $case: 'message', value: reply },
        chunk({ ...artifact('a', ''), parts: [part] }, false),
        chunk({ ...artifact('b', ''), metadata: value }, false),
        { $case: 'task', value: task },
      ];
    };
    for (const each of said(nested(401))) {
      expect(() => output.entries(each)).toThrow('data that is nested deeper than 400 levels');
    }
    expect(merged).toEqual([]);
    for (const each of said(nested(400))) expect(() => output.entries(each)).not.toThrow();
  });

  it('puts the ids of the task, the role of the agent and the time of the platform on the output of an agent', () => {
    const metadata: object[] = [];
    const output = new TurnOutput(claimedRun(), (added) => metadata.push(added));
    const [entry] = output.entries(status(TaskState.TASK_STATE_WORKING, 'thinking'));
    expect(entry?.payload.value).toMatchObject({
      taskId: 'task',
      contextId: 'context',
      status: { message: { taskId: 'task', contextId: 'context', role: Role.ROLE_AGENT } },
    });
    const { status: stamped } = entry!.payload.value as { status: { timestamp: string } };
    expect(stamped.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(entry?.end).toBeUndefined();
    expect(metadata).toEqual([{ seen: true }]);
  });

  it.each([
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_REJECTED,
    TaskState.TASK_STATE_INPUT_REQUIRED,
  ])('ends the turn with state %d', (state) => {
    const [entry] = new TurnOutput(claimedRun(), () => undefined).entries(status(state));
    expect(entry?.end).toEqual({ state, outcome: null });
  });

  it('turns a bare message into a completed status with that message', () => {
    const output = new TurnOutput(claimedRun(), () => undefined);
    const [entry] = output.entries({ $case: 'message', value: message('hi') });
    expect(entry?.end).toEqual({ state: TaskState.TASK_STATE_COMPLETED, outcome: 'message' });
    expect(entry?.payload.$case).toBe('statusUpdate');
  });

  it('converts a whole task: new artifacts and a status with content become events', () => {
    const known = artifact('old', 'kept');
    const output = new TurnOutput(withArtifacts(1, known), () => undefined);
    const task = { ...claimedRun().snapshot.task, artifacts: [known, artifact('new', 'fresh')] };
    const entries = output.entries({ $case: 'task', value: task });
    expect(entries.map(({ payload }) => payload.$case)).toEqual(['artifactUpdate']);
    const done = {
      ...task,
      status: { state: TaskState.TASK_STATE_COMPLETED, message: undefined, timestamp: '' },
    };
    expect(output.entries({ $case: 'task', value: done }).at(-1)?.end?.state).toBe(done.status.state);
  });

  it('refuses a status without a state and an artifact without an id', () => {
    const output = new TurnOutput(claimedRun(), () => undefined);
    expect(() => output.entries(status(TaskState.TASK_STATE_UNSPECIFIED))).toThrow(TurnFailure);
    expect(() => output.entries(chunk(artifact('', 'x'), false))).toThrow(TurnFailure);
  });

  describe('invariant 10: the first chunk of a new attempt replaces what the dead one had sent', () => {
    it('starts an artifact anew that the dead attempt had begun', () => {
      const output = new TurnOutput(withArtifacts(2), () => undefined);
      expect(updateOf(output, chunk(artifact('a', 'one'), true)).append).toBe(false);
      expect(updateOf(output, chunk(artifact('a', 'two'), true)).append).toBe(true);
    });

    it('takes nothing of the dead attempt with what an earlier turn had put into it', () => {
      const [before, after] = [artifact('a', 'turn 1'), artifact('a', 'turn 1', 'dead attempt')];
      const { snapshot } = claimedRun();
      const task = { ...snapshot.task, artifacts: [after] };
      const run = claimedRun({ attempt: 2, artifactsAtStart: [before], snapshot: { ...snapshot, task } });
      const update = updateOf(new TurnOutput(run, () => undefined), chunk(artifact('a', 'turn 2'), true));
      expect([update.append, textsOf(update.artifact)]).toEqual([false, ['turn 1', 'turn 2']]);
    });

    it('keeps what an earlier turn had put into it', () => {
      const output = new TurnOutput(withArtifacts(2, artifact('a', 'earlier')), () => undefined);
      const first = updateOf(output, chunk(artifact('a', 'now'), true));
      expect(first.append).toBe(false);
      expect(textsOf(first.artifact)).toEqual(['earlier', 'now']);
    });

    it('lets a first attempt go on with an artifact of an earlier turn', () => {
      const output = new TurnOutput(withArtifacts(1, artifact('a', 'earlier')), () => undefined);
      const first = updateOf(output, chunk(artifact('a', 'now'), true));
      expect(first.append).toBe(true);
      expect(textsOf(first.artifact)).toEqual(['now']);
    });
  });
});
