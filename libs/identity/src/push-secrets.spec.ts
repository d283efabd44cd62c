import { loadEnvironment } from '@baton/config';
import { randomBytes } from 'node:crypto';
import { PushSecrets } from './push-secrets.js';

const WEBHOOK = { tenantId: 'a'.repeat(36), id: 'w1' };
const NOW = Date.parse('2026-11-30T10:00:00Z');
const HOUR_MS = 3_600_000;

const secrets = new PushSecrets(
  loadEnvironment({
    DATABASE_URL: 'postgres://localhost/none',
    BATON_MASTER_KEY: randomBytes(32).toString('base64'),
  }),
);

describe('the secrets of a webhook', () => {
  it('sign both while they overlap, the newest first, and then the newest alone', () => {
    const first = secrets.create(WEBHOOK);
    const second = secrets.rotate(WEBHOOK, first.sealed, HOUR_MS, NOW);
    const inForce = (now: number) => secrets.inForce(WEBHOOK, second.sealed, now);
    expect(inForce(NOW)).toEqual([second.secret, first.secret]);
    expect(inForce(NOW + HOUR_MS - 1)).toEqual([second.secret, first.secret]);
    expect(inForce(NOW + HOUR_MS)).toEqual([second.secret]);
  });

  it('are at most two: a further rotation ends the oldest', () => {
    const first = secrets.create(WEBHOOK);
    const second = secrets.rotate(WEBHOOK, first.sealed, HOUR_MS, NOW);
    const third = secrets.rotate(WEBHOOK, second.sealed, HOUR_MS, NOW);
    expect(secrets.inForce(WEBHOOK, third.sealed, NOW)).toEqual([third.secret, second.secret]);
  });

  it('do not overlap if that is asked for, as after a leak', () => {
    const first = secrets.create(WEBHOOK);
    const second = secrets.rotate(WEBHOOK, first.sealed, 0, NOW);
    expect(secrets.inForce(WEBHOOK, second.sealed, NOW)).toEqual([second.secret]);
  });

  it('cannot be read under another webhook or tenant', () => {
    const { sealed } = secrets.create(WEBHOOK);
    for (const other of [
      { ...WEBHOOK, id: 'w2' },
      { ...WEBHOOK, tenantId: 'b'.repeat(36) },
    ]) {
      expect(() => secrets.inForce(other, sealed, NOW)).toThrow('cannot be decrypted');
    }
  });
});

it('the credentials of a push config cannot be read under another config, task or tenant', () => {
  const config = { tenantId: 'a'.repeat(36), taskId: 't1', configId: 'c1' };
  const given = { token: 'a token', credentials: 'credentials' };
  const sealed = secrets.seal(config, given);
  expect(secrets.open({ ...config, sealed })).toEqual(given);
  for (const other of [{ configId: 'c2' }, { taskId: 't2' }, { tenantId: 'b'.repeat(36) }]) {
    expect(() => secrets.open({ ...config, ...other, sealed })).toThrow('cannot be decrypted');
  }
});
