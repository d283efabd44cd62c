import { type AuditRecord, AuditStore, Database, PLATFORM } from '@baton/database';
import { join } from 'node:path';
import { createDatabase, type TestDatabase } from '../../../test/support/index.js';
import { MASTER_KEY } from '../../api/src/admin/admin-api.fixture.js';
import { baton, folder, json, ownMachine, refusal } from './operator.fixture.js';

const env = (): Record<string, string> => ({ ...ownMachine(), BATON_MASTER_KEY: MASTER_KEY });

async function must(line: string, source = env()): Promise<string> {
  const { code, out, err } = await baton(line, source);
  expect({ line, code, err: code === 0 ? '' : err }).toEqual({ line, code: 0, err: '' });
  return out;
}

describe('a command that works on the database', () => {
  let own: TestDatabase;

  beforeAll(async () => {
    own = await createDatabase();
  });
  afterAll(() => own.drop());

  /** A restore refuses other connections. */
  async function records(): Promise<AuditRecord[]> {
    const store = new Database({ url: own.url, poolSize: 1 });
    try {
      return await new AuditStore(store).list({ limit: 100 });
    } finally {
      await store.close();
    }
  }

  // The API writes the records of all other commands: apps/api/src/admin/admin-audit.int-spec.ts.
  it.each([
    ['operator-tokens create --name ops', { action: 'operator-token.create', detail: { name: 'ops' } }],
    ['secrets rotate', { action: 'secret.rotate', detail: { rotated: 0, failed: 0 } }],
    ['backup <file>', { action: 'backup.create' }],
    ['restore --force <file>', { action: 'backup.restore' }],
  ])('writes one record of the operator: %s', async (command, record) => {
    const before = new Set((await records()).map(({ id }) => id));
    const line = command.replace('<file>', join(folder, 'walk.tar.gz'));
    await must(line, { DATABASE_URL: own.url, BATON_MASTER_KEY: MASTER_KEY });
    const written = (await records()).filter(({ id }) => !before.has(id));
    // What a restore brings back was written before.
    const [newest, ...others] = written;
    const actor = { kind: 'operator', key: 'operator', name: null };
    expect(newest).toMatchObject({
      ...record,
      tenantId: PLATFORM,
      actor,
      source: 'command line',
      outcome: 'ok',
    });
    if (!command.startsWith('restore')) expect(others).toEqual([]);
  });
});

beforeAll(() => json('tenants create walk'));

it('a tenant’s records are printed as a table, filtered', async () => {
  expect(await must('audit --tenant walk --action tenant --limit 1')).toMatch(
    /^TIME +ACTION +TARGET +WHO +FROM +OUTCOME\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d  tenant\.\w+ +tenant walk +command line, \S+ \(baton_operator_\S+\) +loopback +ok$/,
  );
  expect(JSON.parse(await must('audit --tenant walk --from 2099-01-01T00:00:00Z --json'))).toEqual([]);
  expect(await refusal('audit --tenant nobody', env())).toMatch(/^There is no tenant "nobody"/);
  expect(await refusal('audit --tenant walk --all', env())).toBe('Give --tenant <slug> or --all, not both.');
  expect(await refusal('audit --all --action paint', env())).toMatch(/^--action: there is no action "paint"/);
  expect(await refusal('audit --all --limit 0', env())).toMatch(/^--limit: "0" is not a whole number/);
  expect(await refusal('audit --all --until soon', env())).toMatch(/^--until: "soon" is not a time/);
});
