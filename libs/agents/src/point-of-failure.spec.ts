import { pointOfFailure, reopenedStep } from './point-of-failure.js';

type Entry = Parameters<typeof pointOfFailure>[0][number];

const NOTHING = {
  kind: null,
  event: null,
  execution: null,
  id: null,
  hasError: false,
  hasCalls: false,
  isCanceled: false,
};

/** A journal of one run, from texts such as `begun 1`, `ended 1`, `error 1`, `step calls`, `result`. */
const journal = (...entries: string[]): Entry[] =>
  entries.map((text, i) => {
    const [what = '', more] = text.split(' ');
    const entry = { ...NOTHING, position: i + 1, runId: 'run' };
    if (['begun', 'failed', 'ended', 'error'].includes(what)) {
      const event = what === 'error' ? 'ended' : what;
      return {
        ...entry,
        event,
        execution: 1,
        id: Number(more),
        hasError: what !== 'begun' && what !== 'ended',
      };
    }
    return { ...entry, kind: what, hasCalls: more === 'calls' };
  });

const ofSteps = (...entries: string[]) => pointOfFailure(journal(...entries), 'run').reopened;
const ofModel = (...entries: string[]) => pointOfFailure(journal(...entries), 'run').dropped;

describe('the point where a task of an agent in code has failed', () => {
  it('is the step that has failed for good, with all its tries', () => {
    expect(ofSteps('begun 1', 'ended 1', 'begun 2', 'failed 2', 'begun 2', 'error 2')).toEqual([6]);
  });

  it('is each of the steps that have failed side by side', () => {
    expect(ofSteps('begun 1', 'begun 2', 'error 1', 'failed 2', 'begun 2', 'error 2')).toEqual([3, 6]);
  });

  it('keeps the answer of a model that the code has not got yet: it is paid', () => {
    const called = {
      ...NOTHING,
      position: 2,
      runId: 'run',
      kind: 'step',
      event: 'called',
      execution: 1,
      id: 1,
    };
    expect(pointOfFailure([...journal('begun 1'), called], 'run').dropped).toEqual([]);
  });

  it('is not a step whose failure the code has handled', () => {
    expect(ofSteps('begun 1', 'error 1', 'begun 2', 'ended 2')).toEqual([]);
    expect(ofSteps('begun 1', 'error 1', 'begun 2', 'error 2')).toEqual([4]);
  });

  it('is no step if the code has failed between them', () => {
    expect(ofSteps('begun 1', 'ended 1')).toEqual([]);
    expect(ofSteps()).toEqual([]);
  });

  it('is not a point to continue from, if the finished steps were undone', () => {
    const undone = journal('begun 1', 'ended 1', 'compensating');
    undone[2]!.event = 'compensating';
    expect(pointOfFailure(undone, 'run').undoneAt).toBe(3);
  });

  it('is each step that could not be undone, in a task that undoes those of a canceled one', () => {
    const undoing = journal('begun 1', 'error 1', 'compensating', 'begun 2', 'error 2', 'begun 3', 'ended 3');
    Object.assign(undoing[2]!, { event: 'compensating', isCanceled: true });
    expect(pointOfFailure(undoing, 'run')).toMatchObject({ reopened: [5], undoesCanceled: true });
  });

  it('is in the last turn', () => {
    const earlier = journal('begun 1', 'error 1').map((entry) => ({ ...entry, runId: 'earlier' }));
    expect(pointOfFailure(earlier, 'run')).toEqual({ dropped: [], reopened: [] });
  });
});

describe('the point where a task of an llm agent has failed', () => {
  it('is the answer that was refused, with the correction for the model', () => {
    expect(ofModel('asked', 'step calls', 'result', 'step', 'correction', 'step')).toEqual([4, 5, 6]);
  });

  it('is a call of the model that got no answer: its tokens still count', () => {
    expect(ofModel('asked', 'step calls', 'result', 'failed-call')).toEqual([]);
    expect(ofModel('asked', 'step', 'failed-call')).toEqual([2]);
  });

  it('is after an answer whose calls can be made', () => {
    expect(ofModel('asked', 'step calls')).toEqual([]);
    expect(ofModel('asked', 'step calls', 'begun')).toEqual([]);
  });
});

it('makes a failure of the end of a step, after which the step is tried again', () => {
  const error = { name: 'Error', message: 'down' };
  const end = { event: 'ended', execution: 1, id: 2, at: '2026-11-26T00:00:00.000Z', head: 7, error };
  expect(reopenedStep(end)).toEqual({ ...end, event: 'failed', until: 0 });
  expect(reopenedStep({ event: 'ended', id: 2 })).toBeUndefined();
  expect(reopenedStep('anything')).toBeUndefined();
});
