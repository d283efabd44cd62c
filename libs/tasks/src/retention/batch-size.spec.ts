import { BatchSize } from './batch-size.js';

describe('the size of a batch', () => {
  it('grows while batches are quick, up to the most', () => {
    const size = new BatchSize(800);
    expect(size.current).toBe(100);
    size.adaptTo(5);
    expect(size.current).toBe(200);
    for (let i = 0; i < 10; i++) size.adaptTo(1);
    expect(size.current).toBe(800);
  });

  it('shrinks at once when rows are large, down to a single one', () => {
    const size = new BatchSize(800);
    size.adaptTo(500);
    expect(size.current).toBe(10);
    size.adaptTo(15_000);
    expect(size.current).toBe(1);
  });
});
