import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { createDatabase } from '../support/database.js';
import { findPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { Stack } from '../support/stack.js';

/** On both sides of UTC: a time that is read or written in the wrong zone is hours too late or too early. */
const ZONES = [
  { postgres: 'America/New_York', processes: 'Asia/Kolkata' },
  { postgres: 'Asia/Kolkata', processes: 'America/New_York' },
];
const binary = findPgBouncer();
const WAYS = binary ? ['directly', 'through PgBouncer'] : ['directly'];

describe.each(ZONES)('Postgres in $postgres, processes in $processes', ({ postgres, processes }) => {
  let stack: Stack;
  let bouncer: PgBouncer | undefined;
  let admin: string;

  beforeAll(async () => {
    const database = await createDatabase();
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET TimeZone = '${postgres}'`,
    );
    await client.end();
    stack = await Stack.start({
      driver: 'postgres',
      workers: 0,
      database,
      env: { TZ: processes, TOKEN_CACHE_MS: '100' },
    });
    if (binary) {
      bouncer = await startPgBouncer(binary, database.url, 3);
      await stack.addApi({ DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: database.url });
    }
    admin = (await stack.createTenant('admin', 'tasks:read')).token;
  });
  afterAll(async () => {
    await stack.stop();
    await bouncer?.remove();
  });

  type Token = { id: string; secret: string; expires_at: string | null; created_at: string };
  const call = (api: number, token: string, path: string, body?: object): Promise<Response> =>
    fetch(`${stack.apis[api]!.url}/v1/${path}`, {
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
  const issue = async (api: number, path: string, body: object): Promise<Token> =>
    (await (await call(api, admin, path, body)).json()) as Token;
  const statusOf = async (api: number, { secret }: Token): Promise<number> =>
    (await call(api, secret, 'whoami')).status;
  const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
  /** When the token is refused. One that outlives its end by minutes would do so for hours. */
  const refused = async (api: number, token: Token, end: number): Promise<number> => {
    while ((await statusOf(api, token)) !== 401) {
      if (Date.now() > end + 120_000) throw new Error(`The token is good beyond its end (${WAYS[api]})`);
      await delay(100);
    }
    return Date.now();
  };

  /** Each way at the same time: most of the time is spent waiting for the end of a token. */
  const eachWay = async (check: (api: number) => Promise<void>): Promise<void> => {
    await Promise.all(WAYS.map((_, api) => check(api)));
  };

  const isGoodUntilItsEnd = async (api: number): Promise<void> => {
    const hour = await issue(api, 'tokens', {
      name: 'hour',
      scopes: ['tasks:read'],
      expires_at: inMs(3_600_000),
    });
    expect(await statusOf(api, hour)).toBe(200);
    /** A token that was good. A slow machine asks when its end has passed: then one that is good for longer. */
    const goodFor = async (ms: number): Promise<Token> => {
      const token = await issue(api, 'tokens', {
        name: `soon ${ms}`,
        scopes: ['tasks:read'],
        expires_at: inMs(ms),
      });
      const status = await statusOf(api, token);
      if (status === 401 && Date.now() > Date.parse(token.expires_at!)) return goodFor(2 * ms);
      expect(status).toBe(200);
      return token;
    };
    const soon = await goodFor(10_000);
    const end = Date.parse(soon.expires_at!);
    expect(await refused(api, soon, end)).toBeGreaterThanOrEqual(end);
    expect(await statusOf(api, hour)).toBe(200);
  };
  it('a token is good until its end, and no longer', () => eachWay(isGoodUntilItsEnd));

  const isGoodForTheOverlap = async (api: number): Promise<void> => {
    /** A slow machine asks when the overlap is over: then with a longer one. */
    const rotated = async (seconds: number): Promise<[Token, Token, end: number]> => {
      const old = await issue(api, 'tokens', {
        name: `rotated ${seconds}`,
        scopes: ['tasks:read'],
        expires_at: inMs(3_600_000),
      });
      const begun = Date.now();
      const next = await issue(api, `tokens/${old.id}/rotate`, {
        overlap_seconds: seconds,
        expires_at: inMs(7_200_000),
      });
      const status = await statusOf(api, old);
      if (status === 401 && Date.now() > begun + 1000 * seconds) return rotated(2 * seconds);
      expect(status).toBe(200);
      return [old, next, Date.now() + 1000 * seconds];
    };
    const [first, second, end] = await rotated(8);
    expect(await statusOf(api, second)).toBe(200);
    await refused(api, first, end);
    expect(await statusOf(api, second)).toBe(200);
  };
  it('the secret before a rotation is good for the overlap, and no longer', () =>
    eachWay(isGoodForTheOverlap));

  it.each(WAYS)('the list has the times as they are (%s)', async (way) => {
    const api = WAYS.indexOf(way);
    const end = inMs(86_400_000);
    const { id } = await issue(api, 'tokens', { name: 'shown', scopes: ['tasks:read'], expires_at: end });
    const { tokens } = (await (await call(api, admin, 'tokens')).json()) as { tokens: Token[] };
    const shown = tokens.find((token) => token.id === id)!;
    expect(shown.expires_at).toBe(end);
    expect(Math.abs(Date.parse(shown.created_at) - Date.now())).toBeLessThan(600_000);
  });
});
