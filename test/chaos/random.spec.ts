import { Random } from './random.js';

const draw = (random: Random) => Array.from({ length: 20 }, () => random.integer(1, 1000));

describe('random numbers of a seed', () => {
  it('are the same for the same seed and purpose, whatever else was drawn', () => {
    const seed = new Random('s');
    draw(seed);
    expect(draw(seed.fork('task', 1))).toEqual(draw(new Random('s').fork('task', 1)));
    expect(draw(seed.fork('task', 1))).not.toEqual(draw(seed.fork('task', 2)));
    expect(draw(new Random('s'))).not.toEqual(draw(new Random('t')));
  });

  it('come as often as their weights say', () => {
    const random = new Random('w');
    const drawn = Array.from({ length: 10_000 }, () => random.weighted({ a: 70, b: 30, never: 0 }));
    const share = (name: string) => drawn.filter((each) => each === name).length / drawn.length;
    expect(share('a')).toBeCloseTo(0.7, 1);
    expect(share('b')).toBeCloseTo(0.3, 1);
    expect(share('never')).toBe(0);
  });
});
