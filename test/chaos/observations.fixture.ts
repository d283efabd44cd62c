import type { Frame, Observations, Said, StoredTask, TaskRecord } from './observations.js';

export const MARK = 'mark-0123456789ab';
export const OTHER_MARK = 'mark-ba9876543210';
const TEXT = `${MARK} hello`;
const T = { taskId: 't' };

const frame = (sequence: number, said: Said): Frame => ({
  sequence,
  at: sequence * 100,
  raw: JSON.stringify({ sequence, said }),
  said,
});

const chunk = (artifactId: string, append: boolean, text: string): Said => ({
  kind: 'artifact',
  ...T,
  artifactId,
  append,
  texts: [text],
});
const status = (state: string): Said => ({ kind: 'status', ...T, state });
const user = (messageId: string) => ({ messageId, role: 'user' as const });

/** Give events their sequences. */
export const logOf = (...events: Said[]): Frame[] => events.map((said, i) => frame(i + 1, said));

/** An echo of four chunks whose first attempt died after two, read by its sender and by a companion. */
export function soundEcho(): { record: TaskRecord; stored: StoredTask } {
  const log = logOf(
    { kind: 'task', ...T, state: 'submitted', artifacts: {}, history: [user('m-1')] },
    status('working'),
    chunk('echo-1', false, TEXT),
    chunk('echo-1', true, TEXT),
    chunk('echo-1', false, TEXT),
    chunk('echo-1', true, TEXT),
    chunk('echo-1', true, TEXT),
    chunk('echo-1', true, TEXT),
    status('completed'),
  );
  const artifacts = { 'echo-1': [TEXT, TEXT, TEXT, TEXT] };
  const record: TaskRecord = {
    name: 'stream-1',
    kind: 'stream',
    tenant: 'tenant-1',
    generation: '1.0',
    taskId: 't',
    finished: true,
    expected: { agent: 'echo', text: TEXT, chunks: 4 },
    messageIds: ['m-1'],
    viewers: [
      { name: 'sender', from: { kind: 'snapshot' }, frames: [...log] },
      { name: 'companion', from: { kind: 'log', after: 0 }, frames: [...log] },
    ],
    answeredStates: ['working', 'completed'],
  };
  const snapshot = { kind: 'task' as const, ...T, state: 'completed', artifacts, history: [user('m-1')] };
  const attempts = [0, 1, 1, 1, 2, 2, 2, 2, 2];
  return { record, stored: { tenant: 'tenant-1', taskId: 't', snapshot, log, attempts } };
}

/** Two turns of the scribe, of two lines each. */
export function soundScribe(): { record: TaskRecord; stored: StoredTask } {
  const line = (author: string, at: string, turn: number) => `${author} ${at} ${MARK} ${turn}`;
  const said = [line('aaaaaaaa 1', '1.1', 1), line('aaaaaaaa 1', '1.2', 1)];
  const more = [line('bbbbbbbb 2', '2.1', 2), line('bbbbbbbb 2', '2.2', 2)];
  const log = logOf(
    { kind: 'task', ...T, state: 'submitted', artifacts: {}, history: [user('m-1')] },
    status('working'),
    chunk('turn-1', false, said[0]!),
    chunk('turn-1', true, said[1]!),
    status('input-required'),
    status('submitted'),
    status('working'),
    chunk('turn-2', false, more[0]!),
    chunk('turn-2', true, more[1]!),
    status('completed'),
  );
  const history = [user('m-1'), { messageId: 'q', role: 'agent' as const }, user('m-2')];
  const artifacts = { 'turn-1': said, 'turn-2': more };
  const record: TaskRecord = {
    name: 'turns-1',
    kind: 'turns',
    tenant: 'tenant-1',
    generation: '1.0',
    taskId: 't',
    finished: true,
    expected: {
      agent: 'scribe',
      turns: [
        { text: `${MARK} 1`, lines: 2 },
        { text: `${MARK} 2`, lines: 2 },
      ],
    },
    messageIds: ['m-1', 'm-2'],
    viewers: [{ name: 'sender', from: { kind: 'snapshot' }, frames: log.slice(0, 5) }],
    answeredStates: ['input-required', 'completed'],
  };
  const snapshot = { kind: 'task' as const, ...T, state: 'completed', artifacts, history };
  const attempts = [0, 2, 2, 2, 2, 0, 1, 1, 1, 1];
  return { record, stored: { tenant: 'tenant-1', taskId: 't', snapshot, log, attempts } };
}

/** A run in which nothing but this was observed. */
export function observed(
  { record, stored }: { record: TaskRecord; stored: StoredTask },
  more: Partial<Observations> = {},
): Observations {
  return {
    records: [record],
    stored: [stored],
    oddAnswers: [],
    faults: [],
    struck: [],
    foreignAsks: [],
    attacks: [],
    schedules: [],
    mcp: { records: [], tasks: [], received: 0 },
    versions: { records: [], received: 0 },
    code: { records: [], received: 0, deploys: 0 },
    marks: { 'tenant-1': MARK, 'tenant-2': OTHER_MARK },
    crashes: [],
    ...more,
  };
}
