import { getEventListeners } from 'node:events';
import { withinTurn } from './within-turn.js';

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

describe('work within a turn', () => {
  let turn: AbortController;
  beforeEach(() => (turn = new AbortController()));

  it('is aborted when the turn is stopped', async () => {
    let reason: unknown;
    const work = withinTurn(undefined, turn.signal, (signal) => {
      signal.addEventListener('abort', () => (reason = signal.reason));
      return new Promise(() => undefined);
    });
    const stopped = new Error('The turn was stopped');
    turn.abort(stopped);
    await expect(work).rejects.toBe(stopped);
    expect(reason).toBe(stopped);
  });

  it('is aborted when it takes too long, and the turn goes on', async () => {
    await expect(withinTurn(1, turn.signal, untilAborted)).rejects.toMatchObject({
      name: 'StepTimeout',
      message: 'no answer within 1 ms',
    });
    expect(turn.signal.aborted).toBe(false);
  });

  it('gets an aborted signal in a turn that is over', async () => {
    turn.abort();
    await expect(withinTurn(undefined, turn.signal, async ({ aborted }) => aborted)).resolves.toBe(true);
  });

  it('leaves nothing at the turn once it has ended', async () => {
    await expect(withinTurn(60_000, turn.signal, async () => 1)).resolves.toBe(1);
    await expect(withinTurn(undefined, turn.signal, () => Promise.reject(new Error('no')))).rejects.toThrow(
      'no',
    );
    expect(getEventListeners(turn.signal, 'abort')).toEqual([]);
  });
});
