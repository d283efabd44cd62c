import { table } from '../docs/settings.js';

/** What a peer does, and what Baton makes of it: one row of docs/agents/provider-behaviour.md, and one test. */
export interface Quirk {
  /** What the peer does: goes on after "When a model provider …". */
  when: string;
  /** Names of the peers that are tested with it. */
  on: readonly string[];
  task: 'completed' | 'failed';
  /** How many requests the peer gets. */
  calls: number;
  /** What the caller of the task reads: the reply, or the reason of the failure. */
  caller: string;
  /** What the model reads of it in its next request. */
  model?: string;
}

/**
 * A section of the page.
 * @param peers all peers, to write "all" instead of their names
 */
export function section(
  title: string,
  introduction: string,
  peers: readonly string[],
  rows: readonly Quirk[],
): string {
  const cells = rows.map(({ when, on, task, calls, caller, model = '' }) => [
    when,
    on.length === peers.length ? 'all' : on.join(', '),
    `${task}, ${calls}`,
    caller,
    model,
  ]);
  const titles = ['When it …', 'Tested with', 'Task, calls', 'The caller reads', 'The model reads'];
  return `## ${title}\n\n${introduction}\n\n${table([titles, ...cells.map((row) => row.map(cell))])}`;
}

/** A text as a cell of Markdown: names in angle brackets would be HTML. */
const cell = (text: string): string =>
  text.replace(/[|<>]/g, (character) => `\\${character}`).replace(/\n/g, ' ');
