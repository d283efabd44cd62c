import { PageMemory } from './page-memory.js';

describe('the memory for pages of logs', () => {
  let memory: PageMemory;
  let granted: string[];
  beforeEach(() => {
    memory = new PageMemory(100);
    granted = [];
  });
  const wait = (holder: string, bytes: number, name = holder) =>
    memory.wait(holder, bytes, () => void granted.push(name));

  it('serves the holders in turns, however much one of them waits for', () => {
    for (const holder of ['readers', 'others']) memory.take(holder, 45);
    for (const holder of ['first', 'second']) memory.take(holder, 5);
    for (const name of ['a', 'b']) wait('first', 10, name);
    for (const name of ['c', 'd']) wait('second', 10, name);
    expect(granted).toEqual([]);
    // There is room for one page at a time.
    for (let pages = 0; pages < 4; pages += 1) memory.give('readers', 10);
    expect(granted).toEqual(['a', 'c', 'b', 'd']);
  });

  it('serves a smaller page when the larger one before it is given up', () => {
    memory.take('acme', 40);
    const giveUp = wait('acme', 30, 'large');
    wait('acme', 10, 'small');
    expect(granted).toEqual([]);
    giveUp();
    expect(granted).toEqual(['small']);
  });

  it('does nothing when a granted wait is given up', () => {
    const giveUp = wait('acme', 50);
    expect(granted).toEqual(['acme']);
    giveUp();
    expect(memory.take('acme', 1)).toBe(false);
  });
});
