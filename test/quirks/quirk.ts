import { table } from '../docs/settings.js';

/** What a peer does, and what Baton makes of it: one row of docs/agents/provider-behaviour.md, and one test. */
export interface Quirk {
  /** What the peer does: continues after "When a model provider …". */
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
 * @param common parts of many texts, which the introduction has: the rows have "…" in their place
 */
export function section(
  title: string,
  introduction: string,
  rows: readonly Quirk[],
  common: readonly string[] = [],
): string {
  const short = (text: string): string => common.reduce((rest, each) => rest.replace(each, '…'), text);
  const part = (heading: string, task: Quirk['task'], reads: readonly Column[]): string => {
    const quirks = rows.filter((row) => row.task === task);
    const columns: Column[] = [
      ['When it …', ({ when }) => when],
      ['Calls', ({ calls }) => String(calls)],
      ...reads.filter(([, textOf]) => quirks.some((quirk) => textOf(quirk) !== '')),
    ];
    const cells = quirks.map((quirk) => columns.map(([, textOf]) => cell(textOf(quirk))));
    return `### ${title}: ${heading}\n\n${table([columns.map(([name]) => name), ...cells])}`;
  };
  const model: Column = ['The model reads', (quirk) => short(quirk.model ?? '')];
  const completed = part('the task completes', 'completed', [model]);
  const failed = part('the task fails', 'failed', [
    ['The caller reads', ({ caller }) => short(caller)],
    model,
  ]);
  return `## ${title}\n\n${introduction}\n\n${completed}\n\n${failed}`;
}

type Column = [title: string, textOf: (quirk: Quirk) => string];

/** A text as a cell of Markdown: names in angle brackets would be HTML. */
const cell = (text: string): string =>
  text.replace(/[|<>]/g, (character) => `\\${character}`).replace(/\n/g, ' ');
