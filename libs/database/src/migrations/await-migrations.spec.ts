import { awaitMigrations } from './await-migrations.js';

describe('a process that waits for its schema', () => {
  it('waits for no Postgres, and logs nothing, if it need not or if it shuts down', async () => {
    const lines: string[] = [];
    const logger = { warn: (text: string) => void lines.push(text) };
    const closed = new Error('Cannot use a pool after calling end on the pool');
    const database = { pendingMigrations: () => Promise.reject(closed) };
    await awaitMigrations(database, logger, { isAwayFine: true });
    await awaitMigrations(database, logger, { isAwayFine: false, isLeaving: () => true });
    expect(lines).toEqual([]);
  });
});
