import { setTimeout as delay } from 'node:timers/promises';
import { grouped } from './answer-stream.js';

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
}

describe('what is grouped', () => {
  it('is the same in the same order, the first at once and the rest in few groups', async () => {
    async function* words() {
      for (let i = 0; i < 500; i++) {
        await delay(0);
        yield i;
      }
    }
    const groups = await collect(grouped(words(), 60));
    expect(groups.flat()).toEqual(Array.from({ length: 500 }, (_, i) => i));
    expect(groups[0]).toEqual([0]);
    expect(groups.length).toBeLessThan(250);
  });

  it('comes as soon as it is due though the source is silent', async () => {
    let resume = (): void => undefined;
    const paused = new Promise<void>((resolve) => (resume = resolve));
    async function* words() {
      yield 'a';
      yield 'b';
      await paused;
      yield 'c';
    }
    const groups = grouped(words(), 5);
    const said = [...(await groups.next()).value, ...(await groups.next().then(({ value }) => value ?? []))];
    expect(said.slice(0, 2)).toEqual(['a', 'b']);
    resume();
    expect((await collect(groups)).flat()).toEqual(['a', 'b', 'c'].slice(said.length));
  });

  it('fails where the source fails, after what it said before, and not before it is read', async () => {
    async function* words() {
      await Promise.resolve();
      yield 'a';
      throw new Error('broken');
    }
    const groups = grouped(words(), 1);
    expect(await groups.next()).toEqual({ done: false, value: ['a'] });
    await delay(5);
    await expect(groups.next()).rejects.toThrow('broken');
  });
});
