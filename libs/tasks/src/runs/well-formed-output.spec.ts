import { dataPart, Role, TaskState, textPart, type Part } from '@baton/a2a';
import type { AgentOutput } from '@baton/agents';
import fc from 'fast-check';
import { artifact, message } from './claimed-run.fixture.js';
import { WellFormedOutput } from './well-formed-output.js';

const [HIGH, LOW] = ['\ud83d', '\ude00'] as const;

function chunk(artifactId: string, parts: Part[], { append = true, lastChunk = false } = {}): AgentOutput {
  const value = { ...artifact(artifactId, ''), parts };
  return {
    $case: 'artifactUpdate',
    value: { taskId: '', contextId: '', artifact: value, append, lastChunk, metadata: undefined },
  };
}

const text = (artifactId: string, value: string, more = {}): AgentOutput =>
  chunk(artifactId, [textPart(value)], more);
const status = (state: TaskState, says = ''): AgentOutput => ({
  $case: 'statusUpdate',
  value: {
    taskId: '',
    contextId: '',
    status: { state, message: message(says, Role.ROLE_AGENT), timestamp: undefined },
    metadata: { says },
  },
});
const COMPLETED = status(TaskState.TASK_STATE_COMPLETED);
const WORKING = status(TaskState.TASK_STATE_WORKING);

const saidBy = (parts: readonly Part[]): unknown[] => parts.map(({ content }) => content?.value as unknown);

/** What the log gets: the texts of each event, behind the artifact's id. */
function logOf(...outputs: AgentOutput[]): unknown[] {
  const output = new WellFormedOutput();
  return [...outputs.flatMap((each) => output.convert(each)), ...output.rest()].map((each) => {
    if (each.$case === 'artifactUpdate')
      return [each.value.artifact!.artifactId, ...saidBy(each.value.artifact!.parts)];
    if (each.$case === 'statusUpdate') return each.value.metadata;
    return each.value;
  });
}

describe('the output of an agent', () => {
  it('is passed on as it is if it is well-formed', () => {
    const output = text('a', `fine ${HIGH}${LOW}\0`);
    const [passed] = new WellFormedOutput().convert(output);
    expect(passed).toEqual(output);
  });

  it('has a character whole that is split over two chunks', () => {
    expect(logOf(text('a', `x${HIGH}`, { append: false }), WORKING, text('a', `${LOW}y`))).toEqual([
      ['a', 'x'],
      { says: '' },
      ['a', `${HIGH}${LOW}y`],
    ]);
    expect(logOf(text('a', HIGH), text('a', LOW), COMPLETED)).toEqual([
      ['a', ''],
      ['a', HIGH + LOW],
      { says: '' },
    ]);
  });

  it('has it whole in each of several artifacts', () => {
    expect(logOf(text('a', HIGH), text('b', HIGH), text('b', LOW), text('a', LOW))).toEqual([
      ['a', ''],
      ['b', ''],
      ['b', HIGH + LOW],
      ['a', HIGH + LOW],
    ]);
  });

  it('has it whole where it is split over two parts', () => {
    expect(logOf(chunk('a', [textPart(`x${HIGH}`), textPart(`${LOW}y`)]))).toEqual([
      ['a', 'x', `${HIGH}${LOW}y`],
    ]);
  });

  it.each<[string, AgentOutput[], unknown[]]>([
    ['at the end of the turn', [text('a', HIGH), COMPLETED], [['a', ''], ['a', '\ufffd'], { says: '' }]],
    [
      'at the end of the output',
      [text('a', HIGH)],
      [
        ['a', ''],
        ['a', '\ufffd'],
      ],
    ],
    ['in the last chunk', [text('a', `x${HIGH}`, { lastChunk: true })], [['a', 'x\ufffd']]],
    [
      'before another text',
      [text('a', HIGH), text('a', 'y')],
      [
        ['a', ''],
        ['a', '\ufffdy'],
      ],
    ],
    [
      'before data',
      [text('a', HIGH), chunk('a', [dataPart(1)])],
      [
        ['a', ''],
        ['a', '\ufffd', 1],
      ],
    ],
    ['without the first half', [text('a', LOW)], [['a', '\ufffd']]],
    ['in data', [chunk('a', [dataPart({ [HIGH]: [LOW] })])], [['a', { '\ufffd': ['\ufffd'] }]]],
    [
      'in the id of an artifact',
      [text(HIGH, HIGH), text(HIGH, LOW)],
      [
        ['\ufffd', ''],
        ['\ufffd', HIGH + LOW],
      ],
    ],
    ['in a status', [status(TaskState.TASK_STATE_WORKING, `x${LOW}`)], [{ says: 'x\ufffd' }]],
  ])('has U+FFFD in place of half a character %s', (_where, outputs, log) => {
    expect(logOf(...outputs)).toEqual(log);
  });

  it('forgets the half of an artifact that is replaced', () => {
    expect(logOf(text('a', HIGH), text('a', `${LOW}y`, { append: false }), COMPLETED)).toEqual([
      ['a', ''],
      ['a', '\ufffdy'],
      { says: '' },
    ]);
  });

  it('is well-formed, and the same text wherever an agent cuts it', () => {
    const units = fc.array(fc.constantFrom(HIGH, LOW, 'a', '\0', '\u{1f600}'), { maxLength: 8 });
    fc.assert(
      fc.property(fc.array(units, { minLength: 1, maxLength: 5 }), (chunks) => {
        const whole = chunks.flat().join('');
        // The cuts are between any two code units.
        const pieces = chunks.map((piece) => piece.join(''));
        const log = logOf(...pieces.map((piece) => text('a', piece))) as [string, ...string[]][];
        expect(log.flatMap(([, ...texts]) => texts).join('')).toBe(whole.toWellFormed());
      }),
    );
  });
});
