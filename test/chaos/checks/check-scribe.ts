import type { Frame, StoredTask } from '../observations.js';
import type { Finding } from './finding.js';

interface Line {
  sequence: number;
  execution: string;
  turn: number;
  line: number;
  /** It continues with the lines before it, and does not replace them. */
  append: boolean;
}

/**
 * The scribe's lines name the execution that wrote them: within a turn no execution comes back after another
 * has begun, and each writes its lines one by one: from the first, or, after durable steps, from where the one before it was.
 */
export function* checkScribe({ taskId: task, log }: StoredTask): Generator<Finding> {
  const lines = log.flatMap(linesOf);
  const over = new Set<string>();
  let last: Line | undefined;
  for (const line of lines) {
    const goesOn = last?.execution === line.execution && last.turn === line.turn;
    if (!goesOn && over.has(line.execution)) {
      const detail = `event ${line.sequence}: execution ${line.execution} writes after ${last?.execution}`;
      yield { defect: 'zombie', task, detail };
    }
    if (last && !goesOn) over.add(last.execution);
    const isNext = goesOn || (line.append && last?.turn === line.turn);
    const expected = isNext ? (last?.line ?? 0) + 1 : 1;
    if (line.line !== expected) {
      const defect = line.line > expected ? 'lost' : 'doubled';
      yield { defect, task, detail: `event ${line.sequence}: line ${line.line}, not ${expected}` };
    }
    last = line;
  }
}

function linesOf({ sequence, said }: Frame): Line[] {
  if (said.kind !== 'artifact') return [];
  return said.texts.flatMap((text) => {
    const [, execution, turn, line] = /^([\da-f]{8} \d+) (\d+)\.(\d+) /.exec(text) ?? [];
    return execution
      ? [{ sequence, execution, turn: Number(turn), line: Number(line), append: said.append }]
      : [];
  });
}
