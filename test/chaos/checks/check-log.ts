import { isTerminal, stateIn } from '../dialects.js';
import type { Frame, StoredTask } from '../observations.js';
import type { Finding } from './finding.js';
import { fold, sameArtifacts } from './fold.js';
import { sequenceDefects } from './sequence.js';

/** A log is 1..n, ends with its end, agrees with the snapshot, and no attempt wrote after its successor. */
export function* checkLog(stored: StoredTask): Generator<Finding> {
  const { taskId: task, log, attempts, snapshot } = stored;
  for (const [defect, detail] of sequenceDefects(log, 0)) yield { defect, task, detail: `log: ${detail}` };
  if (log.length < attempts.length) {
    const ended = log.some(({ said }) => isTerminal(stateIn(said)));
    yield {
      defect: ended ? 'afterTerminal' : 'lost',
      task,
      detail: `a resume from 0 shows ${log.length} of ${attempts.length} events`,
    };
  }
  const end = log.findIndex(({ said }) => isTerminal(stateIn(said)));
  if (end >= 0 && end < log.length - 1) {
    yield { defect: 'afterTerminal', task, detail: `log: events after ${log[end]!.sequence}, its end` };
  }
  const { state, artifacts } = fold(log);
  if (state !== snapshot.state) {
    yield { defect: 'wrong', task, detail: `the log says ${state}, the task ${snapshot.state}` };
  }
  if (!sameArtifacts(artifacts, snapshot.artifacts)) {
    yield { defect: 'wrong', task, detail: 'the artifacts of the task are not those of its log' };
  }
  yield* checkAttempts(stored);
}

/**
 * Within a turn attempts never go back, and the first chunk of each replaces what the one before had sent. After durable steps
 * it may continue instead: `checkScribe` then sees whether it continues in the right place.
 */
function* checkAttempts({ taskId: task, log, attempts }: StoredTask): Generator<Finding> {
  let highest = 0;
  let begun = new Map<string, number>();
  for (const frame of log) {
    const attempt = attempts[frame.sequence - 1] ?? 0;
    if (startsTurn(frame)) [highest, begun] = [0, new Map()];
    if (attempt === 0) continue;
    if (attempt < highest) {
      const detail = `event ${frame.sequence} is of attempt ${attempt}, after one of ${highest}`;
      yield { defect: 'zombie', task, detail };
    }
    highest = Math.max(highest, attempt);
    const { said } = frame;
    if (said.kind !== 'artifact') continue;
    const isFirst = begun.get(said.artifactId) !== attempt;
    const mayGoOn = begun.has(said.artifactId) && isOfSteps(said.texts);
    begun.set(said.artifactId, attempt);
    if (isFirst === said.append && !(isFirst && mayGoOn)) {
      const detail = `event ${frame.sequence}, ${isFirst ? 'the first chunk of an attempt, appends' : 'a later chunk, replaces'}`;
      yield { defect: 'wrong', task, detail };
    }
  }
}

/** Whether executions of the scribe wrote it whose lines are durable steps: their ids say so. */
const isOfSteps = (texts: readonly string[]): boolean => texts.every((text) => text.startsWith('dddd'));
const startsTurn = ({ said }: Frame): boolean => stateIn(said) === 'submitted';
