import type { VersionOutcome, VersionRecord } from '../observations.js';
import { checkRepeats } from './check-repeats.js';
import type { Finding } from './finding.js';

const STEPS = ['mark', 'sign', 'seal'];

/** A pinned task ends with the version with which it began, and does each step once, whatever versions are stored meanwhile. */
export function* checkVersions({ records, received }: VersionOutcome): Generator<Finding> {
  for (const record of records) yield* checkPinned(record);
  const known = records.reduce((sum, { calls }) => sum + calls.length, 0);
  if (known !== received) {
    const detail = `it has got ${received} calls, ${known} of them of known tasks`;
    yield { defect: 'unexpected', task: 'tool server of versions', detail };
  }
}

function* checkPinned(record: VersionRecord): Generator<Finding> {
  const { number, agent, fault, isOver, stored, storedEdition, calls, questions } = record;
  const task = `pinned task ${number} (${agent})`;
  if (fault !== undefined) yield { defect: 'unexpected', task, detail: fault };
  else if (!isOver) yield { defect: 'stuck', task, detail: `it is ${stored?.state ?? 'without an answer'}` };
  const [first] = calls;
  const other = calls.find(({ edition }) => edition !== first?.edition);
  if (first && other)
    yield {
      defect: 'wrong',
      task,
      detail: `${first.step} is of edition ${first.edition}, ${other.step} of ${other.edition}`,
    };
  if (isOver && stored?.state !== 'completed')
    yield { defect: 'wrong', task, detail: `it is ${stored?.state}: ${stored?.text.slice(0, 200)}` };
  if (stored?.state === 'completed') {
    const expected = `edition ${first?.edition}`;
    if (stored.text !== expected)
      yield { defect: 'wrong', task, detail: `${JSON.stringify(stored.text)} is not ${expected}` };
    if (storedEdition !== first?.edition)
      yield {
        defect: 'wrong',
        task,
        detail: `its version is edition ${storedEdition}, it began with ${expected}`,
      };
    for (const step of STEPS) {
      if (!calls.some((call) => call.step === step))
        yield { defect: 'lost', task, detail: `its step ${step} was not done` };
    }
    if (!questions.some(({ intended }) => intended.length > 0))
      yield { defect: 'wrong', task, detail: 'it did not ask before the step that needs approval' };
  }
  for (const { unknown, intended } of questions) {
    if (unknown.length + intended.length === 0)
      yield { defect: 'wrong', task, detail: 'it asks a person, and no call of it waits or is unknown' };
  }
  for (const step of new Set(calls.map((call) => call.step))) {
    yield* checkRepeats(
      task,
      step,
      calls.filter((call) => call.step === step).map(({ key }) => key),
      (key) => questions.filter(({ unknown }) => unknown.includes(key)).length,
    );
  }
}
