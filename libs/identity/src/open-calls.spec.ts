import { PLATFORM_ACTOR } from '@baton/database';
import { ProtocolError } from '@baton/a2a';
import type { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import type { JwtService } from './issuers/jwt.service.js';
import type { LimitsService } from './limits.service.js';
import { OpenCalls } from './open-calls.js';
import { ControlInMemory } from './control.fixture.js';
import { refusedAs, tokenService, TokensInMemory } from './token.fixture.js';
import type { TokenService } from './token.service.js';
import type { RefusedToken } from './token-state.js';
import type { Caller } from './caller.js';

let tokens: TokensInMemory;
let control: ControlInMemory;
let service: TokenService;
let open: OpenCalls;
/** Callers whose issuer is no longer trusted. */
let untrusted: Map<Caller, RefusedToken>;
/** Ids of suspended tenants. */
let suspended: Set<string>;

beforeEach(async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  tokens = new TokensInMemory();
  control = new ControlInMemory();
  service = tokenService(tokens, control);
  suspended = new Set();
  untrusted = new Map();
  const jwts = { refused: async () => untrusted } as Partial<JwtService> as JwtService;
  const limits = {
    assertActive: async (tenantId: string): Promise<void> => {
      if (suspended.has(tenantId)) throw new ProtocolError('tenant-suspended', 'the tenant is suspended');
    },
    inactive: async (tenantIds: readonly string[]) => new Set(tenantIds.filter((id) => suspended.has(id))),
  } as Partial<LimitsService> as LimitsService;
  open = new OpenCalls(service, jwts, limits, control as unknown as Messaging, Logger.silent());
  await service.onModuleInit();
  await open.onModuleInit();
});
afterEach(() => {
  open.onModuleDestroy();
  jest.useRealTimers();
});

/** A caller with a token of its own. */
async function caller(
  expiresAt: Date | null = null,
): Promise<{ caller: Caller; id: string; secret: string }> {
  const issued = await service.issue({ tenantId: 'acme', name: 'ci', scopes: [], expiresAt }, PLATFORM_ACTOR);
  const verification = await service.verify(issued.secret);
  if (!verification.ok) throw new Error(verification.reason);
  return { caller: verification.caller, id: issued.token.id, secret: issued.secret };
}

/** How many calls of a caller, and why they have ended. */
function calls(of: Caller, count = 1): { reasons: string[]; leave: () => void } {
  const reasons: string[] = [];
  const end = ({ kind, message }: ProtocolError): void => void reasons.push(`${kind}: ${message}`);
  const leave = Array.from({ length: count }, () => open.watch(of, end));
  return { reasons, leave: () => leave.forEach((stop) => stop()) };
}

const read = () => jest.spyOn(tokens, 'byHashes');
/** The statements of a tick have been answered. */
const answered = () => new Promise(setImmediate);

describe('open calls', () => {
  it('end at once, and once, when the token is revoked; those of other tokens go on', async () => {
    const [ours, theirs] = [await caller(), await caller()];
    const [mine, others] = [calls(ours.caller, 3), calls(theirs.caller)];
    await service.revoke('acme', ours.id, PLATFORM_ACTOR);
    await answered();
    expect(mine.reasons).toEqual(Array(3).fill('unauthenticated: the token was revoked'));
    await jest.advanceTimersByTimeAsync(5_000);
    expect([mine.reasons.length, others.reasons.length]).toEqual([3, 0]);
  });

  it('end at once when their tenant is suspended, those of guests too; those of other tenants go on', async () => {
    const { caller: of } = await caller();
    const { credential: _, ...guest } = of;
    const [ours, theirs] = [calls(of, 2), calls({ ...of, tenantId: 'other' })];
    const guests = calls(guest);
    suspended.add('acme');
    await control.publishControl({ type: 'tenant-suspended', tenantId: 'acme' });
    await answered();
    const reason = 'tenant-suspended: the tenant is suspended';
    expect([ours.reasons, guests.reasons, theirs.reasons]).toEqual([[reason, reason], [reason], []]);
  });

  it('end within a second of a suspension without a notification, those of guests too', async () => {
    const { caller: of } = await caller();
    const { credential: _, ...guest } = of;
    const [ours, guests, theirs] = [calls(of), calls(guest), calls({ ...of, tenantId: 'other' })];
    suspended.add('acme');
    await jest.advanceTimersByTimeAsync(1_000);
    const reason = 'tenant-suspended: the tenant is suspended';
    expect([ours.reasons, guests.reasons, theirs.reasons]).toEqual([[reason], [reason], []]);
  });

  it('are not read when another tenant changes its tokens', async () => {
    const [ours, theirs] = [await caller(), await caller()];
    calls({ ...ours.caller, tenantId: 'other' });
    const { reasons } = calls(theirs.caller);
    const reads = read();
    await service.revoke('acme', theirs.id, PLATFORM_ACTOR);
    await answered();
    expect(reasons).toEqual(['unauthenticated: the token was revoked']);
    expect(reads.mock.calls).toEqual([[[theirs.caller.credential]]]);
  });

  it('end within a second of a revocation without a notification, and the cache forgets the token', async () => {
    const { caller: of, id, secret } = await caller();
    const { reasons } = calls(of);
    control.isAway = true;
    await tokens.revoke('acme', id);
    expect((await service.verify(secret)).ok).toBe(true);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(reasons).toEqual(['unauthenticated: the token was revoked']);
    expect(await service.verify(secret)).toEqual(refusedAs('revoked', { id, tenantId: 'acme' }));
  });

  it('end when the token expires, also one of another kind that the database does not know', async () => {
    const expiresAt = new Date(Date.now() + 3_000);
    const { caller: of } = await caller(expiresAt);
    const { credential: _, ...foreign } = of;
    const [ours, theirs] = [calls(of), calls(foreign)];
    await jest.advanceTimersByTimeAsync(2_500);
    expect([ours.reasons, theirs.reasons]).toEqual([[], []]);
    await jest.advanceTimersByTimeAsync(1_000);
    const reasons = ['unauthenticated: the token has expired'];
    expect([ours.reasons, theirs.reasons]).toEqual([reasons, reasons]);
  });

  it('end when the token loses a scope that it had, not when it gains one', async () => {
    const { caller: of, id } = await caller();
    await service.change('acme', id, { scopes: ['agents:call', 'tasks:read'] }, PLATFORM_ACTOR);
    const { reasons } = calls({ ...of, scopes: ['agents:call'] });
    await service.change('acme', id, { scopes: ['admin'] }, PLATFORM_ACTOR);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(reasons).toEqual([]);
    await service.change('acme', id, { scopes: ['tasks:read'] }, PLATFORM_ACTOR);
    await answered();
    expect(reasons).toEqual([expect.stringMatching(/^unauthenticated: the token has fewer rights now/)]);
  });

  it('end when the token loses an agent that it had, not when it gains one', async () => {
    const { caller: ofAll, id } = await caller();
    const change = (agents: string[]) => service.change('acme', id, { agents }, PLATFORM_ACTOR);
    await change(['echo', 'clerk']);
    const ofEcho = calls({ ...ofAll, agents: { slugs: ['echo'], ids: [] } });
    for (const agents of [['echo', 'other'], []]) await change(agents);
    const unlimited = calls(ofAll);
    await jest.advanceTimersByTimeAsync(1_000);
    expect([ofEcho.reasons, unlimited.reasons]).toEqual([[], []]);
    await change(['clerk']);
    await answered();
    const reasons = [expect.stringMatching(/^unauthenticated: the token has fewer rights now/)];
    expect([ofEcho.reasons, unlimited.reasons]).toEqual([reasons, reasons]);
  });

  it('end with the secret before a rotation', async () => {
    const { caller: of, id } = await caller();
    const { reasons } = calls(of);
    await service.rotate('acme', id, { overlapMs: 2_000 }, PLATFORM_ACTOR);
    await jest.advanceTimersByTimeAsync(1_500);
    expect(reasons).toEqual([]);
    await jest.advanceTimersByTimeAsync(1_500);
    expect(reasons).toEqual(['unauthenticated: the token was rotated: use its new secret']);
  });

  it('cost one statement a tick for all, and none if they are short or over', async () => {
    const [one, other] = [await caller(), await caller()];
    const reads = read();
    await jest.advanceTimersByTimeAsync(1_000);
    expect(reads).not.toHaveBeenCalled();
    const long = [calls(one.caller, 500), calls(other.caller, 500)];
    await jest.advanceTimersByTimeAsync(1_000);
    expect(reads.mock.calls.every(([hashes]) => hashes.length === 2)).toBe(true);
    expect(reads.mock.calls.length).toBeLessThanOrEqual(3);
    for (const { leave } of long) leave();
    reads.mockClear();
    for (let i = 0; i < 10; i += 1) {
      const short = calls(one.caller, 10);
      await jest.advanceTimersByTimeAsync(100);
      short.leave();
    }
    expect(reads).not.toHaveBeenCalled();
  });

  it('end when the issuer of their token is no longer trusted', async () => {
    const principal = { kind: 'user', key: 'user:ada' } as const;
    const ada: Caller = { tenantId: 'acme', principal, scopes: [], issuer: { url: 'https://id', id: 'i1' } };
    const [ours, theirs] = [calls(ada), calls({ ...ada })];
    await jest.advanceTimersByTimeAsync(1_000);
    expect(ours.reasons).toEqual([]);
    untrusted.set(ada, 'untrusted');
    await jest.advanceTimersByTimeAsync(1_000);
    expect(ours.reasons).toEqual(['unauthenticated: the issuer of the token is no longer trusted']);
    expect(theirs.reasons).toEqual([]);
  });

  it('go on while the database is away, and end when it is back', async () => {
    const { caller: of, id } = await caller();
    const { reasons } = calls(of);
    const reads = read().mockRejectedValue(new Error('away'));
    await service.revoke('acme', id, PLATFORM_ACTOR);
    await jest.advanceTimersByTimeAsync(3_000);
    expect(reasons).toEqual([]);
    reads.mockRestore();
    await jest.advanceTimersByTimeAsync(1_000);
    expect(reasons).toEqual(['unauthenticated: the token was revoked']);
  });

  it('end although a check was under way that began before the revocation', async () => {
    const [one, other] = [await caller(), await caller()];
    const { reasons } = calls(one.caller);
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    const reads = read().mockImplementationOnce(async (hashes) => {
      const found = await tokens.byHashes(hashes);
      await held;
      return found;
    });
    await service.revoke('acme', other.id, PLATFORM_ACTOR);
    await service.revoke('acme', one.id, PLATFORM_ACTOR);
    reads.mockRestore();
    go();
    await answered();
    expect(reasons).toEqual(['unauthenticated: the token was revoked']);
  });
});
