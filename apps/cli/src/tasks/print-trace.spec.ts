import { printTrace, type Trace } from './print-trace.js';

const at = (second: number): string => new Date(Date.UTC(2026, 10, 26, 12, 0, second)).toISOString();
const span = (id: string, parent: string | null, kind: 'turn' | 'attempt' | 'tool', name: string) => ({
  id,
  parent_id: parent,
  kind,
  name,
  started_at: at(0),
  ended_at: at(2),
  state: 'succeeded' as const,
});

it('prints each span of a trace below the one around it, moved to the right', () => {
  const trace = {
    task_id: 't',
    now: at(3),
    spans: [
      span('1', null, 'turn', '1'),
      span('2', '1', 'attempt', '1'),
      span('3', '2', 'tool', ' of \n others'),
    ],
  } as unknown as Trace;
  const printed: string[] = [];
  const terminal = { out: (text: string) => void printed.push(text), err: (text: string) => void text };
  printTrace(terminal, trace, new Map(), {});
  expect(printed.join('\n').split('\n')).toEqual([
    'SPAN                BEGINS AFTER  TAKES   STATE      ENTRY',
    'turn 1              0.00 s        2.00 s  succeeded',
    '  attempt 1         0.00 s        2.00 s  succeeded',
    '    tool of others  0.00 s        2.00 s  succeeded',
  ]);
});
