import { Metrics } from '@baton/telemetry';
import { execFileSync } from 'node:child_process';
import { Piscina } from 'piscina';
import { ComputePool } from './compute-pool.js';
import { ComputeRefused } from './compute-refused.js';
import { SCHEMA_BOUNDS, schemaExcess } from './schema-bounds.js';

type Json = Record<string, unknown>;

/** Each level is looked at twice by the one above it: 2 to the power of `levels` looks. */
function doubling(levels: number, twice: (name: string) => Json): Json {
  const $defs: Json = { d0: { type: 'string' } };
  for (let i = 1; i <= levels; i++) $defs[`d${String(i)}`] = twice(`#/$defs/d${String(i - 1)}`);
  return { type: 'object', $defs, properties: { a: { $ref: `#/$defs/d${String(levels)}` } } };
}

/** Schemas that a validator does not end with, with a value that is fit for each. */
const ENDLESS: Record<string, [Json, unknown]> = {
  'allOf and $ref': [doubling(40, ($ref) => ({ allOf: [{ $ref }, { $ref }] })), { a: 'x' }],
  'not and allOf': [doubling(40, ($ref) => ({ not: { not: { allOf: [{ $ref }, { $ref }] } } })), { a: 'x' }],
  'anyOf with all errors': [doubling(40, ($ref) => ({ anyOf: [{ $ref }, { $ref }] })), { a: 1 }],
  oneOf: [doubling(40, ($ref) => ({ oneOf: [{ $ref }, { $ref }] })), { a: 1 }],
  'if, then and else': [doubling(40, ($ref) => ({ if: { $ref }, then: { $ref }, else: { $ref } })), { a: 1 }],
  'a pattern': [{ type: 'object', properties: { a: { pattern: '^(a+)+$' } } }, { a: `${'a'.repeat(64)}!` }],
  'names by a pattern': [
    { type: 'object', patternProperties: { '^(([a-z])+.)+[A-Z]([a-z])+$': { type: 'string' } } },
    { [`${'a'.repeat(64)}!`]: 1 },
  ],
  'a reference to itself': [
    { type: 'object', $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } }, $ref: '#/$defs/a' },
    { a: 1 },
  ],
};

const metrics = new Metrics();
const pools: ComputePool[] = [];
function poolOf(timeoutMs: number, threads = 2): ComputePool {
  const pool = new ComputePool({ threads, timeoutMs, metrics });
  pools.push(pool);
  return pool;
}

afterAll(() => Promise.all(pools.map((pool) => pool.close())));

const refusalOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (result) => result,
    (error: unknown) => (error instanceof ComputeRefused ? error.limit : error),
  );

describe('a check against a JSON schema', () => {
  const pool = poolOf(60_000);
  const check = (schema: Json, value: unknown): Promise<string | undefined> =>
    pool.check('tenant', schema, JSON.stringify(value));

  it.each([
    ['http://json-schema.org/draft-07/schema#'],
    ['https://json-schema.org/draft/2020-12/schema'],
    [undefined],
  ])('of dialect %s names what is wrong with a value, by path', async (dialect) => {
    const schema = {
      ...(dialect && { $schema: dialect }),
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
      required: ['city'],
      additionalProperties: false,
    };
    expect(await check(schema, { city: 'Lisbon', days: 3 })).toBeUndefined();
    expect(await check(schema, { city: 'Lisbon', days: 0 })).toBe('/days must be >= 1');
    expect(await check(schema, { days: '3', more: 1 })).toBe(
      "the value must have required property 'city'; " +
        'the value must NOT have additional properties (more); /days must be integer',
    );
  });

  it('is distinguished from an invalid schema, which lets every value pass', async () => {
    const known = { type: 'object', 'x-own': true, properties: { at: { format: 'moon' } } };
    expect(await pool.schemaProblem('tenant', known)).toBeUndefined();
    expect(await pool.schemaProblem('tenant', { type: 'objekt' })).toMatch('must be equal to one of');
    const broken = { type: 'object', properties: { a: { pattern: '(' } } };
    expect(await pool.schemaProblem('tenant', broken)).toMatch('Invalid regular expression');
    expect(await check({ type: 'objekt' }, { a: 1 })).toBeUndefined();
  });

  it('tests patterns, each time with the same result', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
    for (let i = 0; i < 3; i++) {
      expect(await check(schema, { a: 'aaa' })).toBeUndefined();
      expect(await check(schema, { a: 'b' })).toMatch('/a must match pattern');
    }
  });

  it('quotes no more than a line of what is wrong', async () => {
    const wrong = await check(
      { type: 'object', additionalProperties: false },
      { ['x'.repeat(1_000_000)]: 1 },
    );
    expect(wrong!.length).toBeLessThan(400);
  });
});

describe('a check that does not end', () => {
  // One for all: the start of a thread costs more than the check.
  const impatient = poolOf(150);

  it.each(Object.keys(ENDLESS))('is aborted: %s', async (what) => {
    const [schema, value] = ENDLESS[what]!;
    expect(schemaExcess(schema)).toBeUndefined();
    expect(['computeTime', 'computeMemory']).toContain(
      await refusalOf(impatient.check('tenant', schema, JSON.stringify(value))),
    );
    // The thread that replaces it works, as soon as it gets enough of the CPU.
    let next: unknown;
    do next = await refusalOf(impatient.check('tenant', { type: 'object' }, '1'));
    while (next === 'computeTime');
    expect(next).toBe('the value must be object');
  });

  it('blocks neither the process nor its next piece of work', async () => {
    const pool = poolOf(500);
    const [schema, value] = ENDLESS['a pattern']!;
    const attack = refusalOf(pool.check('attacker', schema, JSON.stringify(value)));
    let turns = 0;
    const state = { over: false };
    void attack.finally(() => (state.over = true));
    while (!state.over) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      turns += 1;
    }
    expect(await attack).toBe('computeTime');
    expect(turns).toBeGreaterThan(20);
    expect((await metrics.render()).body).toMatch(/baton_limit_exceeded_total\{limit="computeTime"\} [1-9]/);
  });

  it('is aborted when it takes too much memory', async () => {
    const pool = poolOf(60_000);
    const many = JSON.stringify({ a: Array.from({ length: 50_000 }, () => 'x') });
    const [schema] = ENDLESS['anyOf with all errors']!;
    const deep = { ...schema, properties: { a: { items: { $ref: '#/$defs/d12' } } } };
    const outcome = await refusalOf(pool.check('tenant', deep, many.replaceAll('"x"', '1')));
    expect(outcome).toBe('computeMemory');
  });

  it('does not keep another tenant waiting', async () => {
    const pool = poolOf(300);
    const [schema, value] = ENDLESS['a pattern']!;
    const order: string[] = [];
    const attacks = Array.from({ length: 5 }, () =>
      refusalOf(pool.check('attacker', schema, JSON.stringify(value))).then(() => order.push('attack')),
    );
    const others = Array.from({ length: 20 }, () =>
      pool.check('other', { type: 'object' }, '{}').then(() => order.push('other')),
    );
    await Promise.all([...attacks, ...others]);
    // One at a time of them, beside all of the others.
    expect(order.indexOf('other')).toBeLessThan(2);
    expect(order.lastIndexOf('other')).toBeLessThan(22);
    expect(order.slice(-3)).toEqual(['attack', 'attack', 'attack']);
  });

  it('is refused while too many wait', async () => {
    const pool = poolOf(2_000);
    const [schema, value] = ENDLESS['a pattern']!;
    const asked = Array.from({ length: 300 }, () =>
      refusalOf(pool.check('attacker', schema, JSON.stringify(value))),
    );
    expect(await asked[299]).toBe('computeWaiting');
    expect(await pool.check('other', { type: 'object' }, '{}')).toBeUndefined();
    await pool.close();
    await Promise.all(asked);
  });
});

it('the work of a tenant takes a quarter of the time after a burst', async () => {
  jest.useFakeTimers();
  const [tookMs, count, burstMs] = [100, 20, 500];
  const compute = () => new Promise((done) => setTimeout(() => done({ tookMs }), tookMs));
  const threads = jest.spyOn(Piscina.prototype, 'run').mockImplementation(compute);
  const pool = poolOf(2_000);
  const timeOf = async (tenantId: string, pieces: number): Promise<number> => {
    const beganAt = performance.now();
    const work = Array.from({ length: pieces }, () => pool.check(tenantId, {}, '{}'));
    const all = Promise.all(work).then(() => performance.now() - beganAt);
    await jest.advanceTimersByTimeAsync(4 * count * tookMs);
    return all;
  };
  try {
    // The last piece is not paid for.
    expect(await timeOf('one', count)).toBe(4 * ((count - 1) * tookMs - burstMs) + tookMs);
    expect(await timeOf('two', 5)).toBe(5 * tookMs);
  } finally {
    threads.mockRestore();
    jest.useRealTimers();
  }
});

it('threads keep no process alive, and none starts before there is work', () => {
  const script = `
    require(${JSON.stringify(`${__dirname}/../../../test/support/load-typescript.js`)});
    const { Piscina } = require(${JSON.stringify(`${__dirname}/../../../test/support/jest/piscina.js`)});
    const threads = new Piscina({
      filename: ${JSON.stringify(`${__dirname}/compute-thread.js`)}, minThreads: 0, maxThreads: 2, idleTimeout: 600000, env: {},
    });
    if (threads.threads.length > 0) throw new Error('started');
    const started = new Int32Array(new SharedArrayBuffer(8));
    const work = { kind: 'check', schema: '{"type":"object"}', value: '1' };
    threads.run({ work, started }).then(({ problem }) => console.log(problem));`;
  expect(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }).trim()).toBe(
    'the value must be object',
  );
});

describe('the bounds of a schema', () => {
  const nested = (levels: number): Json => (levels === 1 ? {} : { not: nested(levels - 1) });

  it.each<[string, Json, RegExp]>([
    ['bytes', { title: 'x'.repeat(SCHEMA_BOUNDS.bytes) }, /is larger than 65536 bytes/],
    ['levels', nested(65), /is nested deeper than 64 levels/],
    ['nodes', { enum: Array.from({ length: 5_000 }, () => []) }, /has more than 5000 objects and lists/],
    ['references', { allOf: Array.from({ length: 201 }, () => ({ $ref: '#' })) }, /more than 200 references/],
  ])('are in %s', (_what, schema, clause) => expect(schemaExcess(schema)).toMatch(clause));

  it('allow everything within them', () => {
    expect(schemaExcess(nested(64))).toBeUndefined();
    expect(schemaExcess({ enum: Array.from({ length: 4_990 }, () => []) })).toBeUndefined();
  });
});
