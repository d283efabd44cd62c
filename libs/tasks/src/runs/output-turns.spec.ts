import { OutputTurns } from './output-turns.js';

const work = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

/** Runs of these tenants go on at once, each for 2 ms. @returns their order, and when others were served */
async function orderOf(...tenants: string[]): Promise<string[]> {
  const turns = new OutputTurns();
  const seen: string[] = [];
  const runs = tenants.map(async (tenant) => {
    await turns.next(tenant);
    // Not all that a run does begins at once.
    await Promise.resolve();
    setImmediate(() => seen.push('others'));
    seen.push(tenant);
    work(2);
  });
  await Promise.all(runs);
  return seen;
}

it('the event loop serves others between two runs', async () => {
  expect(await orderOf('a', 'a', 'a')).toEqual(['a', 'others', 'a', 'others', 'a']);
});

it('tenants take turns, however many runs one of them has', async () => {
  const order = await orderOf('busy', 'busy', 'busy', 'calm');
  expect(order.filter((each) => each !== 'others')).toEqual(['busy', 'calm', 'busy', 'busy']);
});

it('short runs go on in the same turn of the event loop', async () => {
  const turns = new OutputTurns();
  const seen: string[] = [];
  setImmediate(() => seen.push('before'));
  const runs = [1, 2, 3].map((run) =>
    turns.next('a').then(() => {
      if (run === 1) setImmediate(() => seen.push('others'));
      seen.push(`run ${run}`);
    }),
  );
  await Promise.all(runs);
  expect(seen).toEqual(['before', 'run 1', 'run 2', 'run 3']);
});

it('a run that comes again waits behind those that have not been served', async () => {
  const turns = new OutputTurns();
  const seen: string[] = [];
  const run = async (name: string): Promise<void> => {
    for (const part of [1, 2]) {
      await turns.next('a');
      seen.push(`${name}${part}`);
      work(2);
    }
  };
  await Promise.all([run('x'), run('y')]);
  expect(seen).toEqual(['x1', 'y1', 'x2', 'y2']);
});
