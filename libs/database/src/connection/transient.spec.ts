import { retryTransient } from './transient.js';
import { DatabaseUnavailableError } from './database-unavailable-error.js';

const away = new DatabaseUnavailableError('Postgres is not available');

/** Fails as often as there are errors, then answers. */
const failing = (...errors: Error[]) => {
  const read = jest.fn(async () => {
    const error = errors.shift();
    if (error) throw error;
    return 'answer';
  });
  return read;
};

describe('a read of a run that is being prepared', () => {
  const { signal } = new AbortController();

  it('is asked again while Postgres is away', async () => {
    const read = failing(away, away);
    expect(await retryTransient(read, { signal })).toBe('answer');
    expect(read).toHaveBeenCalledTimes(3);
  });

  it('fails with an error that stays', async () => {
    await expect(retryTransient(failing(new Error('broken')), { signal })).rejects.toThrow('broken');
  });

  it('is given up when the run is stopped', async () => {
    const stop = new AbortController();
    const read = jest.fn(async () => {
      stop.abort();
      throw away;
    });
    await expect(retryTransient(read, { signal: stop.signal })).rejects.toThrow(away);
    expect(read).toHaveBeenCalledTimes(1);
  });
});
