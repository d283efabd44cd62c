import { Silence } from './silence.js';

describe('silence', () => {
  const start = () => {
    let at = 0;
    const silence = new Silence(100, () => at);
    silence.step(1);
    const after = (ms: number, sign: number): number => {
      at += ms;
      return silence.step(sign);
    };
    return { after };
  };

  it('grows from step to step and ends with a sign of life', () => {
    const { after } = start();
    expect([after(100, 1), after(100, 1), after(120, 1)]).toEqual([100, 200, 320]);
    expect([after(100, 2), after(100, 2)]).toEqual([0, 100]);
  });

  it('does not count the time in which the watcher stood still as well', () => {
    const { after } = start();
    expect([after(100, 1), after(3_600_000, 1), after(100, 1)]).toEqual([100, 250, 350]);
  });
});
