import { effectKey } from './effect-key.js';

const TASK = '0197a3c5-0000-7000-8000-000000000001';

describe('the key of an effect', () => {
  // Other releases and receivers know the keys of running tasks: they must never change.
  it('is the same in every release', () => {
    expect(effectKey(TASK, 'step', 1, 1, 'charge the card')).toBe('6189c79d-ac2e-58a9-9b63-5422323a5933');
  });

  it('is different for each task and each effect', () => {
    const keys = [
      effectKey(TASK, 'step', 1, 1, 'a'),
      effectKey(TASK, 'step', 1, 2, 'a'),
      effectKey(TASK, 'step', 2, 1, 'a'),
      effectKey(TASK, 'step', 11, 1, 'a'),
      effectKey(TASK, 'step', 1, 11, 'a'),
      effectKey(TASK, 'step', 1, 1, 'b'),
      effectKey(TASK, 'call', 'call-1-1'),
      effectKey('another', 'step', 1, 1, 'a'),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('fits into every header, and shows no name', () => {
    const key = effectKey(TASK, 'step', 1, 1, 'zahle für "Ada"\n');
    expect(key).toMatch(/^[0-9a-f-]{36}$/);
  });
});
