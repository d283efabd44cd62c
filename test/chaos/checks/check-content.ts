import { isTerminal } from '../dialects.js';
import type { Expected, StoredTask, TaskRecord } from '../observations.js';
import type { Defect, Finding } from './finding.js';

/** The task ended as its caller may expect, and has the ordered content: no part less, none more. */
export function* checkContent(record: TaskRecord, stored: StoredTask): Generator<Finding> {
  const { snapshot } = stored;
  const find = (defect: Defect, detail: string): Finding => ({ defect, task: record.name, detail });
  const canceled = snapshot.state === 'canceled';
  if (isTerminal(snapshot.state) && snapshot.state !== 'completed' && !(canceled && record.cancel)) {
    yield find('wrong', `it ended ${snapshot.state}`);
  }
  if (record.cancel === 'done' && !canceled)
    yield find('afterTerminal', `canceled, and yet ${snapshot.state}`);
  const firstEnd = record.answeredStates.find(isTerminal);
  if (firstEnd !== undefined && firstEnd !== snapshot.state) {
    yield find('afterTerminal', `an answer said ${firstEnd}; at the end it is ${snapshot.state}`);
  }
  const afterEnd = record.answeredStates.slice(record.answeredStates.findIndex(isTerminal));
  if (firstEnd !== undefined && afterEnd.some((state) => state !== firstEnd)) {
    yield find('afterTerminal', `answers said ${afterEnd.join(', ')}`);
  }
  for (const [artifactId, wanted] of Object.entries(textsOf(record.expected))) {
    const said = (snapshot.artifacts[artifactId] ?? []).map(withoutAuthor(record.expected));
    yield* compare(said, wanted, canceled).map(([defect, detail]) =>
      find(defect, `${artifactId}: ${detail}`),
    );
  }
  yield* checkHistory(record, stored).map(([defect, detail]) => find(defect, detail));
}

/** What each artifact must be, chunk by chunk. */
function textsOf(expected: Expected): Record<string, string[]> {
  if (expected.agent === 'echo') return { 'echo-1': Array<string>(expected.chunks).fill(expected.text) };
  return Object.fromEntries(
    expected.turns.map(({ text, lines }, i) => [
      `turn-${i + 1}`,
      Array.from({ length: lines }, (_, line) => `${i + 1}.${line + 1} ${text}`),
    ]),
  );
}

const withoutAuthor =
  ({ agent }: Expected) =>
  (text: string): string =>
    agent === 'scribe' ? text.replace(/^[\da-f]{8} \d+ /, '') : text;

function compare(said: string[], wanted: string[], canceled: boolean): [Defect, string][] {
  const differs = said.findIndex((text, i) => i < wanted.length && text !== wanted[i]);
  if (differs >= 0) return [['wrong', `chunk ${differs + 1} is ${JSON.stringify(said[differs])}`]];
  if (said.length > wanted.length) return [['doubled', `${said.length} chunks instead of ${wanted.length}`]];
  // A task that was canceled may have said less.
  if (said.length < wanted.length && !canceled) {
    return [['lost', `${said.length} chunks instead of ${wanted.length}`]];
  }
  return [];
}

/** What the user said stands in the history once and in order. */
function checkHistory({ messageIds }: TaskRecord, { snapshot }: StoredTask): [Defect, string][] {
  const said = snapshot.history.filter(({ role }) => role === 'user').map(({ messageId }) => messageId);
  const missing = messageIds.filter((id) => !said.includes(id));
  const again = said.filter((id, i) => said.indexOf(id) < i);
  const foreign = said.filter((id) => !messageIds.includes(id));
  const inOrder = said.filter((id, i) => said.indexOf(id) === i && messageIds.includes(id));
  const sent = messageIds.filter((id) => said.includes(id));
  return [
    ...missing.map((id): [Defect, string] => ['lost', `the message ${id} is not in the history`]),
    ...again.map((id): [Defect, string] => ['doubled', `the message ${id} is in the history again`]),
    ...foreign.map((id): [Defect, string] => ['wrong', `the message ${id} is not of this task`]),
    ...(inOrder.join() === sent.join() ? [] : [['reordered', 'history'] as [Defect, string]]),
  ];
}
