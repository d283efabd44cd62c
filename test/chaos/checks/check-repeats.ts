import type { Finding } from './finding.js';

/**
 * Calls of one tool by one task. The same call may come again with its key, `allowed` times; another key is another call.
 * @param keys the effect keys with which the tool was called
 */
export function* checkRepeats(
  task: string,
  tool: string,
  keys: readonly string[],
  allowed: (key: string) => number,
): Generator<Finding> {
  const distinct = new Set(keys);
  if (distinct.size > 1)
    yield { defect: 'doubled', task, detail: `its call of ${tool} has ${distinct.size} keys` };
  for (const key of distinct) {
    const times = keys.filter((each) => each === key).length;
    const explained = 1 + allowed(key);
    if (times > explained) {
      const detail = `${tool} was called ${times} times, ${explained} are explained`;
      yield { defect: 'doubled', task, detail };
    }
  }
}
