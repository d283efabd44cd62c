import { EagerRunSeal } from './eager-run-seal.js';

const run = { tenantId: 'tenant', taskId: 'task', runId: 'run' };
const LATER = Date.now() + 3_600_000;
const JSON_TEXT = '{"message":{"parts":[{"text":"a b. c"}]}}';
const seal = new EagerRunSeal({ databaseSystemKey: 'the key of the installation' });
const sealed = seal.seal('worker', run, JSON_TEXT, LATER)!;

describe('the seal of an eager run', () => {
  it('gives its worker what was sealed', () => {
    expect(seal.open('worker', { ...run, sealed })).toBe(JSON_TEXT);
  });

  it.each([
    ['another worker', 'other', { ...run, sealed }],
    ['another tenant', 'worker', { ...run, tenantId: 'other', sealed }],
    ['another task', 'worker', { ...run, taskId: 'other', sealed }],
    ['another run', 'worker', { ...run, runId: 'other', sealed }],
    ['another content', 'worker', { ...run, sealed: sealed.replace('a b', 'a c') }],
    ['a longer time', 'worker', { ...run, sealed: sealed.replace(/^\d+/, String(LATER + 1)) }],
    ['no seal', 'worker', run],
    ['no content', 'worker', { ...run, sealed: sealed.slice(0, sealed.indexOf('{')) }],
  ])('does not open with %s', (_what, worker, received) => {
    expect(seal.open(worker, received)).toBeUndefined();
  });

  it('does not open when the time is over, or with another key', () => {
    const late = seal.seal('worker', run, JSON_TEXT, Date.now() - 1);
    expect(seal.open('worker', { ...run, sealed: late })).toBeUndefined();
    const foreign = new EagerRunSeal({ databaseSystemKey: 'another key' });
    expect(foreign.open('worker', { ...run, sealed })).toBeUndefined();
  });

  it('is not made without a key', () => {
    const keyless = new EagerRunSeal({ databaseSystemKey: undefined });
    expect(keyless.seal('worker', run, JSON_TEXT, LATER)).toBeUndefined();
    expect(keyless.open('worker', { ...run, sealed })).toBeUndefined();
  });
});
