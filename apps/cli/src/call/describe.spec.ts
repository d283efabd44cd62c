import { type Part, TaskState } from '@baton/a2a';
import { eventLine, replyText } from './describe.js';

const part = (content: Part['content'], filename = ''): Part => ({
  content,
  filename,
  metadata: undefined,
  mediaType: '',
});
const text = (value: string): Part => part({ $case: 'text', value });
const artifact = (...parts: Part[]) => ({
  artifactId: 'a-1',
  name: 'answer',
  description: '',
  parts,
  metadata: undefined,
  extensions: [],
});
const IDS = { taskId: 't', contextId: 'c', metadata: undefined };

describe('what an agent said, for people', () => {
  it('is one line an event, with its sequence', () => {
    const status = { state: TaskState.TASK_STATE_INPUT_REQUIRED, message: undefined, timestamp: undefined };
    const update = { $case: 'statusUpdate', value: { ...IDS, status } } as const;
    expect(eventLine({ sequence: 12, payload: update })).toBe('  12  status    input-required');
    expect(eventLine({ sequence: undefined, payload: update })).toBe('   -  status    input-required');
    const value = { ...IDS, artifact: artifact(text('two\nlines')), append: true, lastChunk: false };
    expect(eventLine({ sequence: 3, payload: { $case: 'artifactUpdate', value } })).toBe(
      '   3  artifact  answer+: two lines',
    );
  });

  it('is the text of its artifacts; other parts are JSON or a name', () => {
    const parts = [
      text('see '),
      part({ $case: 'data', value: { a: 1 } }),
      part({ $case: 'raw', value: Buffer.from('x') }, 'report.pdf'),
      text('\u001b[2J'),
    ];
    const task = { id: 't', contextId: 'c', status: undefined, history: [], metadata: undefined };
    const thought = { ...artifact(text('First I look.')), metadata: { 'baton.event': 'reasoning' } };
    expect(replyText({ ...task, artifacts: [thought, artifact(...parts), artifact(text('end'))] })).toBe(
      'see {"a":1}[report.pdf][2J\nend',
    );
  });
});
