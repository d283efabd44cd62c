import { originJson, runOfEffects, splitJournal, taskOfEffects } from './task-origin.js';

const task = { id: 'second' };

describe('the keys of effects', () => {
  const origin = {
    taskIds: ['first'],
    history: [],
    copied: 3,
    effectsOf: { taskId: 'first', runId: 'run of first' },
  };

  it('are those of the failed task with which a task goes on, in the turn that goes on', () => {
    expect(taskOfEffects({ task, origin })).toBe('first');
    expect(runOfEffects({ task, origin, runId: 'second' })).toBe('run of first');
    expect(runOfEffects({ task, origin, runId: 'a later run' })).toBe('a later run');
  });

  it('are its own for a fork, and for a task that begins by itself', () => {
    const { effectsOf: _, ...fork } = origin;
    for (const from of [fork, undefined]) {
      expect(taskOfEffects({ task, origin: from })).toBe('second');
      expect(runOfEffects({ task, origin: from, runId: 'second' })).toBe('second');
    }
  });

  it('are stored with where the task comes from', () => {
    const entryOf = (value: unknown) => ({ runId: 'r', position: 1, value });
    const [first, step] = [entryOf(originJson(origin)), entryOf({ kind: 'step' })];
    expect(splitJournal([first, step])).toEqual({
      origin: expect.objectContaining(origin) as unknown,
      entries: [step],
    });
    expect(splitJournal([step])).toEqual({ origin: undefined, entries: [step] });
  });
});
