import { addToArtifacts, type Artifact } from '../../a2a/artifacts';
import { entriesOf } from './log-entries';
import type { LogEvent } from './task-log';

const said = (text: string, role = 'ROLE_USER') => ({ role, parts: [{ text }] });
const status = (seq: number, state: string): LogEvent => ({ seq, statusUpdate: { status: { state } } });
const chunk = (seq: number, text: string): LogEvent => ({
  seq,
  artifactUpdate: { artifact: { artifactId: 'a', parts: [{ text }] }, append: seq > 2 },
});

describe('the entries of a log', () => {
  it('show an answer in place of the status that it began', () => {
    const [entry] = entriesOf(
      [status(4, 'TASK_STATE_SUBMITTED')],
      new Map([[4, { message: said('Ada'), asked: [] }]]),
      new Map(),
    );
    expect(entry).toMatchObject({ title: 'Message of the caller', parts: [{ text: 'Ada' }] });
  });

  it('show what was answered, and the other parts of the message', () => {
    const asked = [{ data: { approval: { callId: 'c', tool: 'pay' } } }];
    const data = { approval: { callId: 'c', approved: false, reason: 'a draft' } };
    const message = { role: 'ROLE_USER', parts: [{ data }, { text: 'sorry' }] };
    const sent = new Map([[4, { message, asked }]]);
    expect(entriesOf([status(4, 'TASK_STATE_SUBMITTED')], sent, new Map())).toMatchObject([
      {
        title: 'Message of the caller',
        answered: { answers: [{ verb: 'Rejected', tool: 'pay', reason: 'a draft', fields: [] }] },
        parts: [{ text: 'sorry' }],
      },
    ]);
  });

  it('have all pieces of an artifact in one entry, without its content', () => {
    const pieces = [chunk(2, 'one '), chunk(3, 'two ')];
    expect(entriesOf(pieces, new Map(), new Map())).toMatchObject([{ seq: 2, parts: [], raw: pieces }]);
  });

  it('have times that never run backwards', () => {
    const times = new Map([
      [1, '2026-01-31T12:00:01.000Z'],
      [2, '2026-01-31T12:00:00.000Z'],
    ]);
    const events = [status(1, 'TASK_STATE_WORKING'), status(2, 'TASK_STATE_COMPLETED')];
    expect(entriesOf(events, new Map(), times).map(({ at }) => at)).toEqual([times.get(1), times.get(1)]);
  });
});

it('an artifact is what all of its events have made', () => {
  const artifacts = new Map<string, Artifact>();
  for (const { artifactUpdate } of [chunk(2, 'gone '), chunk(3, 'gone '), chunk(2, 'new '), chunk(3, 'text')])
    addToArtifacts(artifacts, artifactUpdate!);
  expect([...artifacts.values()]).toEqual([{ artifactId: 'a', parts: [{ text: 'new text' }] }]);
});
