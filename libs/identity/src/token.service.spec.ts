import { PLATFORM_ACTOR } from '@baton/database';
import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { ControlInMemory } from './control.fixture.js';
import { refusedAs, tokenService, TokensInMemory } from './token.fixture.js';
import type { TokenService } from './token.service.js';
import type { Caller } from './caller.js';

const guess = () => `baton_${randomBytes(32).toString('base64url')}`;

describe('tokens', () => {
  const setUp = async () => {
    const tokens = new TokensInMemory();
    const control = new ControlInMemory();
    const one = tokenService(tokens, control);
    const other = tokenService(tokens, control);
    await Promise.all([one.onModuleInit(), other.onModuleInit()]);
    return { tokens, control, one, other };
  };
  const issue = (service: TokenService, expiresAt: Date | null = null) =>
    service.issue({ tenantId: 'acme', name: 'ci', scopes: ['agents:call'], expiresAt }, PLATFORM_ACTOR);

  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('speak for their tenant, with their scopes', async () => {
    const { one } = await setUp();
    const { secret, token } = await issue(one);
    expect(await one.verify(secret)).toEqual({
      ok: true,
      caller: {
        tenantId: 'acme',
        principal: { kind: 'token', key: `token:${token.id}` },
        scopes: ['agents:call'],
        credential: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    });
  });

  it('are 32 random bytes, of which only the hash and the first characters are stored', async () => {
    const { one, tokens } = await setUp();
    const { secret, token } = await issue(one);
    expect(Buffer.from(secret.replace('baton_', ''), 'base64url')).toHaveLength(32);
    expect(tokens.rows[0]?.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(secret.startsWith(token.prefix)).toBe(true);
    expect(JSON.stringify(tokens.rows)).not.toContain(secret.slice(token.prefix.length));
  });

  it('are found by the hash of the whole secret: a partly right guess makes the same query', async () => {
    const { one, tokens } = await setUp();
    const { secret } = await issue(one);
    const asked = jest.spyOn(tokens, 'byHashes');
    const wrongFrom = (at: number): string => {
      const wrong = secret[at] === 'A' ? 'B' : 'A';
      return secret.slice(0, at) + wrong + secret.slice(at + 1);
    };
    for (const at of ['baton_'.length, 14, 30, secret.length - 2]) {
      asked.mockClear();
      expect(await one.verify(wrongFrom(at))).toEqual({ ok: false, reason: 'unknown' });
      expect(asked.mock.calls).toEqual([[[expect.stringMatching(/^[0-9a-f]{64}$/)]]]);
    }
    expect(await one.verify(secret)).toMatchObject({ ok: true });
  });

  it('are looked up once for many calls at a time, known or not', async () => {
    const { one, tokens } = await setUp();
    const { secret } = await issue(one);
    await Promise.all(Array.from({ length: 20 }, () => one.verify(secret)));
    await one.verify(secret);
    expect(tokens.reads).toBe(1);
    const unknown = guess();
    for (let i = 0; i < 5; i += 1)
      expect(await one.verify(unknown)).toEqual({ ok: false, reason: 'unknown' });
    expect(tokens.reads).toBe(2);
  });

  it('that are unknown are asked for once, also after good ones are read again', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
    const { one, tokens } = await setUp();
    const unknown = guess();
    for (let i = 0; i < 10; i += 1) {
      expect(await one.verify(unknown)).toEqual({ ok: false, reason: 'unknown' });
      jest.advanceTimersByTime(2_000);
    }
    expect(tokens.reads).toBe(1);
  });

  it.each(['', 'baton_', 'baton_short', `${guess()}x`, `other_${guess()}`, 'x'.repeat(100_000)])(
    'a text of another form is refused without a query: %.20s',
    async (secret) => {
      const { one, tokens } = await setUp();
      expect(await one.verify(secret)).toEqual({ ok: false, reason: 'unknown' });
      expect(tokens.reads).toBe(0);
    },
  );

  it('stay in the cache however many guesses come in', async () => {
    const { one, tokens } = await setUp();
    const { secret } = await issue(one);
    await one.verify(secret);
    for (let i = 0; i < 12_000; i += 1) await one.verify(guess());
    const before = tokens.reads;
    await one.verify(secret);
    expect(tokens.reads).toBe(before);
  });

  it('expire even while they are cached', async () => {
    jest.useFakeTimers({ doNotFake: ['performance', 'nextTick', 'setImmediate', 'queueMicrotask'] });
    const { one } = await setUp();
    const { secret, token } = await issue(one, new Date(Date.now() + 500));
    expect((await one.verify(secret)).ok).toBe(true);
    jest.setSystemTime(Date.now() + 500);
    expect(await one.verify(secret)).toEqual(refusedAs('expired', token));
  });

  it('are refused at once in every process after they were revoked in one', async () => {
    const { one, other } = await setUp();
    const { secret, token } = await issue(one);
    expect([await one.verify(secret), await other.verify(secret)]).toMatchObject([
      { ok: true },
      { ok: true },
    ]);
    await one.revoke('acme', token.id, PLATFORM_ACTOR);
    for (const service of [one, other]) {
      expect(await service.verify(secret)).toEqual(refusedAs('revoked', token));
    }
  });

  it('are revoked even if no process can be notified, and then the cache soon forgets them', async () => {
    const tokens = new TokensInMemory();
    const control = new ControlInMemory();
    const [one, other] = [tokenService(tokens, control, 20), tokenService(tokens, control, 20)];
    await other.onModuleInit();
    const { secret, token } = await issue(one);
    await other.verify(secret);
    control.isAway = true;
    expect((await one.revoke('acme', token.id, PLATFORM_ACTOR))?.revokedAt).toBeInstanceOf(Date);
    const since = performance.now();
    while (performance.now() - since < 2000 && (await other.verify(secret)).ok) await setImmediate();
    expect(await other.verify(secret)).toEqual(refusedAs('revoked', token));
  });

  it('cannot be revoked by another tenant', async () => {
    const { one } = await setUp();
    const { secret, token } = await issue(one);
    expect(await one.revoke('other', token.id, PLATFORM_ACTOR)).toBeUndefined();
    expect((await one.verify(secret)).ok).toBe(true);
  });

  it('get a new secret for the same principal; the one before is good for a while longer', async () => {
    jest.useFakeTimers({ doNotFake: ['performance', 'nextTick', 'setImmediate', 'queueMicrotask'] });
    const { one, other } = await setUp();
    const { secret, token } = await issue(one);
    const { principal } = await callerOf(other, secret);
    const first = (await one.rotate('acme', token.id, { overlapMs: 1_000 }, PLATFORM_ACTOR))!;
    expect(await callerOf(other, first.secret)).toMatchObject({ principal });
    expect(await callerOf(other, first.secret)).not.toHaveProperty('expiresAt');
    expect((await callerOf(other, secret)).expiresAt).toEqual(new Date(Date.now() + 1_000));
    jest.setSystemTime(Date.now() + 1_000);
    expect(await other.verify(secret)).toEqual(refusedAs('rotated', token));
    const second = (await one.rotate('acme', token.id, { overlapMs: 0 }, PLATFORM_ACTOR))!;
    expect(await other.verify(first.secret)).toEqual(refusedAs('rotated', token));
    expect(await other.verify(secret)).toEqual({ ok: false, reason: 'unknown' });
    expect(await callerOf(other, second.secret)).toMatchObject({ principal });
  });

  it('expire with the secret before a rotation, if that was to be over sooner', async () => {
    const { one } = await setUp();
    const soon = new Date(Date.now() + 50_000);
    const { secret, token } = await issue(one, soon);
    const rotated = await one.rotate(
      'acme',
      token.id,
      { overlapMs: 60_000, expiresAt: null },
      PLATFORM_ACTOR,
    );
    expect(await callerOf(one, rotated!.secret)).not.toHaveProperty('expiresAt');
    await one.change('acme', token.id, { expiresAt: soon }, PLATFORM_ACTOR);
    expect((await callerOf(one, secret)).expiresAt).toEqual(soon);
  });

  it('have their own limit, which a change applies in every process', async () => {
    const { one, other } = await setUp();
    const { secret, token } = await issue(one);
    expect(await callerOf(other, secret)).not.toHaveProperty('requestsPerSecond');
    await one.change('acme', token.id, { requestsPerSecond: 3 }, PLATFORM_ACTOR);
    expect(await callerOf(other, secret)).toMatchObject({ requestsPerSecond: 3 });
  });

  it('that were used are stored once a minute, outside of requests', async () => {
    jest.useFakeTimers({ doNotFake: ['performance', 'nextTick', 'setImmediate', 'queueMicrotask'] });
    // The cache keeps the clock it found when it was loaded.
    jest.spyOn(performance, 'now').mockImplementation(() => Date.now());
    const { one, tokens } = await setUp();
    const [mine, theirs] = [await issue(one), await issue(one)];
    for (let i = 0; i < 100; i += 1) await one.verify((i % 2 ? mine : theirs).secret);
    expect(tokens.uses).toEqual([]);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(tokens.uses.map(({ id, tenantId }) => [id, tenantId])).toEqual([
      [theirs.token.id, 'acme'],
      [mine.token.id, 'acme'],
    ]);
    for (let i = 0; i < 50; i += 1) {
      await one.verify(mine.secret);
      await jest.advanceTimersByTimeAsync(1_000);
    }
    expect(tokens.uses).toHaveLength(2);
    await jest.advanceTimersByTimeAsync(60_000);
    await one.verify(mine.secret);
    await one.onModuleDestroy();
    expect(tokens.uses).toHaveLength(3);
  });
});

async function callerOf(service: TokenService, secret: string): Promise<Caller> {
  const verification = await service.verify(secret);
  if (!verification.ok) throw new Error(verification.reason);
  return verification.caller;
}
