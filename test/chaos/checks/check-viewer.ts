import { endsTurn, isTerminal, stateIn } from '../dialects.js';
import type { Frame, StoredTask, TaskRecord, Viewer } from '../observations.js';
import type { Defect, Finding } from './finding.js';
import { fold, sameArtifacts } from './fold.js';
import { sequenceDefects } from './sequence.js';

/** A reader saw each event after where it began once, in order, as the log has it, and nothing after the end. */
export function* checkViewer(record: TaskRecord, viewer: Viewer, stored: StoredTask): Generator<Finding> {
  const find = (defect: Defect, detail: string): Finding => ({
    defect,
    task: record.name,
    detail: `${viewer.name}: ${detail}`,
  });
  const [first, ...rest] = viewer.frames;
  const last = viewer.frames.at(-1);
  if (!first || !last) return;
  const fromSnapshot = viewer.from.kind === 'snapshot';
  const events = fromSnapshot ? rest : viewer.frames;
  const after = viewer.from.kind === 'log' ? viewer.from.after : first.sequence;
  for (const [defect, detail] of sequenceDefects(events, after)) yield find(defect, detail);
  if (fromSnapshot && !isCutOf(stored.log, first)) {
    yield find('wrong', `its snapshot at ${first.sequence} is not what the log says up to there`);
  }
  const bySequence = new Map(stored.log.map((frame) => [frame.sequence, frame]));
  for (const frame of events) {
    if (bySequence.get(frame.sequence)?.raw !== frame.raw) {
      yield find('wrong', `event ${frame.sequence} is not that of the log: ${frame.raw.slice(0, 300)}`);
    }
  }
  const end = viewer.frames.findIndex(({ said }) => isTerminal(stateIn(said)));
  if (end >= 0 && end < viewer.frames.length - 1) yield find('afterTerminal', 'events after the end');
  if (record.finished && !endsTurn(stateIn(last.said))) yield find('lost', `nothing after ${last.sequence}`);
}

/** Whether a snapshot is the log up to its sequence, put together. */
function isCutOf(log: readonly Frame[], { sequence, said }: Frame): boolean {
  const folded = fold(log.filter((frame) => frame.sequence <= sequence));
  if (stateIn(said) !== folded.state) return false;
  return said.kind !== 'task' || sameArtifacts(said.artifacts, folded.artifacts);
}
