import { randomBytes } from 'node:crypto';
import { startProcess } from '../support/baton-process.js';
import { createDatabase } from '../support/index.js';

const newKey = (): string => randomBytes(32).toString('base64');

describe('a process with another master key', () => {
  it('does not start, and says which key it needs', async () => {
    const database = await createDatabase();
    const [key, stray] = [newKey(), newKey()];
    const api = await startProcess('api', { DATABASE_URL: database.url, BATON_MASTER_KEY: key });
    await api.stop();
    for (const kind of ['api', 'worker'] as const) {
      const start = startProcess(kind, { DATABASE_URL: database.url, BATON_MASTER_KEY: stray });
      await expect(start).rejects.toThrow(
        /could not start: BATON_MASTER_KEY gives the key [\da-f]{12}, and the secrets of this database are encrypted with the key [\da-f]{12}: let BATON_MASTER_KEY give that key, /,
      );
    }
    const rotating = { BATON_MASTER_KEY: stray, BATON_MASTER_KEY_PREVIOUS: key };
    await (await startProcess('api', { DATABASE_URL: database.url, ...rotating })).stop();
    await database.drop();
  });
});
