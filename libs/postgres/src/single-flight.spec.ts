import { SingleFlight } from './single-flight.js';

it('gives a call during the work its result, and begins again after it', async () => {
  const flight = new SingleFlight<number>();
  let begun = 0;
  let end: (() => void) | undefined;
  const work = async (): Promise<number> => {
    begun += 1;
    await new Promise<void>((resolve) => (end = resolve));
    return begun;
  };
  const results = [flight.run(work), flight.run(work)];
  end?.();
  expect(await Promise.all(results)).toEqual([1, 1]);
  const next = flight.run(work);
  end?.();
  expect(await next).toBe(2);
});

it('begins again after work that failed', async () => {
  const flight = new SingleFlight<number>();
  await expect(flight.run(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await flight.run(async () => 1)).toBe(1);
});
