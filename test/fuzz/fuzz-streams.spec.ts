import { fuzzStreams } from './fuzz-streams.js';

// A seed of your own: FUZZ_SEED. More cases: FUZZ_CASES.
const SEED = Number(process.env.FUZZ_SEED ?? 20261125);
const CASES = Number(process.env.FUZZ_CASES ?? 60);

it('streams of models that are cut, doubled, reordered or mixed end each task, and call no tool that was not called', async () => {
  const endings: Record<string, number> = {};
  const { findings } = await fuzzStreams(CASES, SEED, (state) => {
    endings[state] = (endings[state] ?? 0) + 1;
  });
  expect(findings).toEqual([]);
  // A run in which nothing succeeds or fails tests nothing.
  expect(Object.keys(endings).sort()).toEqual(['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED']);
});
