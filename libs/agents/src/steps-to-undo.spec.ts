import { stepsToUndo } from './steps-to-undo.js';
import { undoEntry } from './undo-entry.js';

type Entry = Parameters<typeof stepsToUndo>[0][number];

/** A journal from texts such as `begun 1`, `undoable 1` (it can be undone), `ended 1`, `error 1`, `compensating`. */
const journal = (...texts: string[]): Entry[] =>
  texts.map((text, i) => {
    const [what = '', id] = text.split(' ');
    const event = { undoable: 'begun', error: 'ended' }[what] ?? what;
    return {
      position: i + 1,
      runId: `run ${i + 1}`,
      event,
      execution: 1,
      id: Number(id ?? 0),
      hasError: what === 'error',
      compensates: what === 'undoable',
    };
  });

describe('the steps of a canceled task that are undone', () => {
  it('are those that have ended, the last one first, and those with an unknown outcome', () => {
    const entries = journal(
      'undoable 1',
      'begun 2',
      'undoable 3',
      'ended 3',
      'ended 1',
      'ended 2',
      'undoable 4',
    );
    expect(stepsToUndo(entries)).toEqual({ runId: 'run 7', execution: 1, steps: [1, 3], unknown: [4] });
  });

  it('exclude those that have failed for good, and those of an earlier execution', () => {
    expect(stepsToUndo(journal('undoable 1', 'error 1'))).toBeUndefined();
    expect(stepsToUndo(journal('begun 1', 'ended 1'))).toBeUndefined();
    expect(stepsToUndo([])).toBeUndefined();
    const next = journal('begun 1').map((entry) => ({ ...entry, position: 3, execution: 2 }));
    expect(stepsToUndo([...journal('undoable 1', 'ended 1'), ...next])).toBeUndefined();
  });

  it('are those that the task itself has begun to undo', () => {
    const undo = stepsToUndo(journal('undoable 1', 'ended 1', 'compensating', 'begun 2'))!;
    expect(undo).toMatchObject({ begunAt: 3 });
    const error = { name: 'RangeError', message: 'nothing in stock' };
    expect(undoEntry(undo, { event: 'compensating', error, steps: [1] }, 'now')).toMatchObject({
      error,
      steps: [1],
      canceled: true,
    });
  });
});
