import { type AnswerMessage, answersOf, readableParts, type AcceptedMessage } from '@baton/contract';
import type { Part } from '../../components/part-view';
import { type Artifact, kindOf, type Message } from '../../a2a/artifacts';
import type { LogEvent } from './task-log';

/** One line of the log. */
export interface Entry {
  seq: number;
  title: string;
  /** The decision on a call that needed approval. */
  approval?: Approval | undefined;
  /** What a message of the caller answers. Its other parts are `parts`. */
  answered?: Pick<AnswerMessage, 'answers' | 'by'>;
  /** When it was stored. Undefined: not known yet. */
  at: string | undefined;
  parts: readonly Part[];
  raw: LogEvent[];
}

/** The metadata of a call that needed approval: Baton writes it, and drops it from what callers send. */
export interface Approval {
  approved: boolean;
  by: string | null;
  at: string | null;
}

export const approvalOf = ({ metadata }: Artifact): Approval | undefined =>
  metadata?.['baton.approval'] as Approval | undefined;

/**
 * One entry for each event, but one for all pieces of an artifact that come after each other. Their times never run backwards.
 * @param messages what callers have sent, by its event
 * @param times when events were stored, by their sequence
 */
export function entriesOf(
  events: readonly LogEvent[],
  messages: ReadonlyMap<number, AcceptedMessage<Message>>,
  times: ReadonlyMap<number, string>,
): Entry[] {
  const entries: (Entry & { artifactId?: string })[] = [];
  let latest = '';
  for (const event of events) {
    const { seq, artifactUpdate } = event;
    const last = entries.at(-1);
    if (artifactUpdate?.append && last?.artifactId === artifactUpdate.artifact.artifactId) {
      last.raw.push(event);
      continue;
    }
    const stored = times.get(seq);
    // Events of one turn can be stored by several processes, whose clocks differ a little. Times of the same form compare as texts.
    if (stored !== undefined && stored > latest) latest = stored;
    const at = stored === undefined ? undefined : latest;
    entries.push({ seq, at, raw: [event], ...contentOf(event, messages.get(seq)) });
  }
  return entries;
}

function contentOf(
  { task, message, statusUpdate, artifactUpdate }: LogEvent,
  sent: AcceptedMessage<Message> | undefined,
): Pick<Entry, 'title' | 'approval' | 'answered' | 'parts'> & { artifactId?: string } {
  if (artifactUpdate) {
    const { artifact } = artifactUpdate;
    const { artifactId, name = artifactId } = artifact;
    return {
      title: `${kindOf(artifact) ?? 'Artifact'}: ${name}`,
      approval: approvalOf(artifact),
      // The page shows the artifact itself above the log.
      parts: [],
      artifactId,
    };
  }
  const said = message ?? sent?.message ?? task?.history?.at(-1);
  if (statusUpdate && !sent) {
    const { state = '', message: reason } = statusUpdate.status;
    const title = state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');
    return { title, parts: readableParts(reason?.parts ?? []) };
  }
  const title = said?.role === 'ROLE_AGENT' ? 'Message of the agent' : 'Message of the caller';
  const { rest: parts, ...answered } = answersOf<Part>(said ?? {}, sent?.asked ?? []);
  return { title, parts, ...(answered.answers.length > 0 && { answered }) };
}
