import type { CodeOutcome, CodeRecord } from '../observations.js';
import type { Finding } from './finding.js';

/** What each task does, in this order. A release may add a step of its own. */
const STEPS = ['mark', 'sign', 'seal'];

/** Tasks of code that changes end, each step is done once, and a pinned task does all steps with the code with which it began. */
export function* checkCode({ records, received }: CodeOutcome): Generator<Finding> {
  for (const record of records) {
    yield* checkTask(record);
    yield* checkEffects(record);
  }
  const known = records.reduce((sum, { effects }) => sum + effects.length, 0);
  if (known !== received) {
    const detail = `it has got ${received} effects, ${known} of them of known tasks`;
    yield { defect: 'unexpected', task: 'receiver of effects', detail };
  }
}

const nameOf = ({ number, agent }: CodeRecord): string => `task in code ${number} (${agent})`;

function* checkTask(record: CodeRecord): Generator<Finding> {
  const { agent, fault, isOver, stored, effects, parked } = record;
  const task = nameOf(record);
  if (fault !== undefined) yield { defect: 'unexpected', task, detail: fault };
  else if (!isOver) yield { defect: 'stuck', task, detail: `it is ${stored?.state ?? 'without an answer'}` };
  if (isOver && stored?.state !== 'completed')
    yield { defect: 'wrong', task, detail: `it is ${stored?.state}: ${stored?.text.slice(0, 200)}` };
  if (agent === 'keeper') {
    const editions = [...new Set(effects.map(({ edition }) => edition))];
    if (editions.length > 1)
      yield { defect: 'wrong', task, detail: `its steps are of the editions ${editions.join(', ')}` };
    if (parked > 0) yield { defect: 'wrong', task, detail: 'it was parked, and it is pinned' };
  }
  if (stored?.state !== 'completed') return;
  for (const step of STEPS) {
    if (!effects.some((effect) => effect.step === step))
      yield { defect: 'lost', task, detail: `its step ${step} was not done` };
  }
  // The code's answer lists the steps that it has called, and its edition. A pinned task has one, and the last step is done by the code that answers, or
  // by one before it.
  const done = [...new Set(effects.map(({ step }) => step))].join(' ');
  const [, names, edition] = /^([a-z ]+) of edition (\d+)$/.exec(stored.text) ?? [];
  if (names !== done)
    yield {
      defect: 'wrong',
      task,
      detail: `it says ${JSON.stringify(stored.text)}, and it has done ${done}`,
    };
  const newest = Math.max(...effects.map((effect) => effect.edition));
  const isWrong = agent === 'keeper' ? Number(edition) !== newest : Number(edition) < newest;
  if (isWrong)
    yield { defect: 'wrong', task, detail: `it says edition ${edition}, its last step is ${newest}` };
}

/** The ledger has a reason for each repetition, and no step is done when a later one has begun. */
function* checkEffects(record: CodeRecord): Generator<Finding> {
  const { effects, ledger } = record;
  const task = nameOf(record);
  const begun: string[] = [];
  for (const { step, key, at } of effects) {
    if (begun.includes(step) && begun.at(-1) !== step)
      yield { defect: 'doubled', task, detail: `its step ${step} was done after ${begun.at(-1)}` };
    if (!begun.includes(step)) begun.push(step);
    const entry = ledger.find((each) => each.key === key);
    if (entry?.endedAt !== undefined && at > entry.endedAt) {
      const detail = `its step ${step} was done ${at - entry.endedAt} ms after it had ended in the ledger`;
      yield { defect: 'doubled', task, detail };
    }
  }
  for (const step of begun) {
    const keys = effects.filter((effect) => effect.step === step).map(({ key }) => key);
    const entries = ledger.filter(({ name }) => name === step);
    const [entry] = entries;
    if (!entry || entries.length > 1 || entry.key !== keys[0] || new Set(keys).size > 1) {
      const inLedger = entries.map(({ key }) => key).join(', ');
      yield {
        defect: 'wrong',
        task,
        detail: `${step} has the keys ${keys.join(', ')}, in the ledger ${inLedger}`,
      };
      continue;
    }
    if (record.stored?.state === 'completed' && entry.outcome !== 'confirmed')
      yield { defect: 'wrong', task, detail: `the ledger has its step ${step} as ${entry.outcome}` };
    // A step that was begun again has an unknown outcome behind it, and records the decision: to repeat it, or to ask the receiver.
    const explained = entry.decision === undefined ? 1 : entry.attempts;
    if (keys.length > explained) {
      const detail = `${step} was done ${keys.length} times, the ledger explains ${explained}`;
      yield { defect: 'doubled', task, detail };
    }
    if (step === 'sign' && keys.length > 1)
      yield {
        defect: 'doubled',
        task,
        detail: `sign was done ${keys.length} times, and the receiver was asked`,
      };
  }
}
