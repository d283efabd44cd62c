import { startServices } from '../support/services.js';
import { allCases, isLookedUp, twinsOf } from './cases.js';
import type { Case } from './case.js';
import { callHeaders, type Twins, World } from './world.js';

/**
 * How often one of the two may be the slower one. Among 80 equal pairs it is so 24 to 56 times, but for one sample
 * in 5,000; a further query makes it so nearly always. Noise of the machine hits both alike.
 */
const FAIR = 0.28;
/** A sample that looks unfair is taken again: only what stays unfair is no accident. */
const SAMPLES = 3;

/** The share of pairs in which the answer for the owner's thing took longer, and the medians in ms. */
interface Sample {
  slower: number;
  owned: number;
  unknown: number;
}

/**
 * Measures whether the time of an answer shows if others have the thing it is about: calls for the owner's thing and
 * for one that does not exist, in turns which comes first. Prints a line per kind of call.
 * @param pairs pairs of calls per sample
 * @returns the titles of the calls whose time differs
 */
export async function measureAnswerTimes(pairs: number): Promise<string[]> {
  const stopServices = await startServices();
  const world = await World.start();
  try {
    const unfair: string[] = [];
    for (const walked of allCases().filter(isLookedUp)) {
      const twins = await twinsOf(walked, world);
      let last = await sample(world, walked, twins, pairs);
      for (let i = 1; i < SAMPLES && !isFair(last); i++) last = await sample(world, walked, twins, pairs);
      if (!isFair(last)) unfair.push(walked.title);
      process.stdout.write(lineOf(walked, last));
    }
    return unfair;
  } finally {
    await world.stop();
    await stopServices();
  }
}

async function sample(world: World, walked: Case, { owned, unknown }: Twins, pairs: number): Promise<Sample> {
  const times = { owned: [] as number[], unknown: [] as number[] };
  for (let i = 0; i < pairs; i++) {
    for (const which of i % 2 ? (['owned', 'unknown'] as const) : (['unknown', 'owned'] as const)) {
      times[which].push(await millisecondsOf(world, walked, which === 'owned' ? owned : unknown));
    }
  }
  const slower = times.owned.filter((time, i) => time > times.unknown[i]!).length / pairs;
  return { slower, owned: median(times.owned), unknown: median(times.unknown) };
}

async function millisecondsOf(world: World, { request }: Case, id: string): Promise<number> {
  const { method, path, headers, body } = request(id);
  const sent = Object.entries({ ...headers, ...callHeaders(world.tokens.stranger) });
  const start = performance.now();
  const response = await fetch(world.stack.apis[0]!.url + path, {
    method,
    headers: Object.fromEntries(sent.filter((header): header is [string, string] => header[1] !== undefined)),
    body: body && JSON.stringify(body),
  });
  await response.arrayBuffer();
  return performance.now() - start;
}

const isFair = ({ slower }: Sample): boolean => slower >= FAIR && slower <= 1 - FAIR;

const lineOf = ({ title }: Case, { slower, owned, unknown }: Sample): string =>
  `${title}: ${owned.toFixed(2)} ms for one of others, ${unknown.toFixed(2)} ms for none; slower in ${Math.round(slower * 100)} %\n`;

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
