import { type Message, Role, TaskState } from './model.js';
import { ORLOJ_PROFILE } from './profiles/orloj.js';
import { SOCIETY_PROFILE } from './profiles/society.js';
import { conversationHistory } from './reply.js';
import { errorOf, replyMessage, taskIn } from '../../../test/support/a2a/profile.js';
import { sampleArtifact, sampleMessage, textPart } from '../../../test/support/a2a/samples.js';
import { turnArtifacts, turnOfAlias } from './turn-of-alias.js';

const orloj = ORLOJ_PROFILE.rules.clientTaskIds!;
const society = SOCIETY_PROFILE.rules.clientTaskIds!;
/** The same message, as a caller sends it again: without the ids that the server has given it. */
const again = sampleMessage({ messageId: '', taskId: '', contextId: '' });
const other = sampleMessage({ messageId: '', parts: [textPart('something else')] });
const turn = (state: TaskState, message: Message, rule = orloj, history?: Message[]) =>
  turnOfAlias(taskIn(state, history && { history }), message, rule);

describe('a message for an id that was used before', () => {
  it('O-8 joins the task when it is the same message', () => {
    for (const state of [
      TaskState.TASK_STATE_SUBMITTED,
      TaskState.TASK_STATE_WORKING,
      TaskState.TASK_STATE_COMPLETED,
      TaskState.TASK_STATE_FAILED,
      TaskState.TASK_STATE_INPUT_REQUIRED,
    ]) {
      expect(turn(state, again)).toBe('join');
    }
  });

  it('O-8 is another message when its own messageId or its metadata is another', () => {
    expect(turn(TaskState.TASK_STATE_COMPLETED, { ...again, messageId: 'm-9' })).toBe('new-turn');
    expect(turn(TaskState.TASK_STATE_COMPLETED, { ...again, messageId: 'm-1' })).toBe('join');
    expect(turn(TaskState.TASK_STATE_COMPLETED, { ...again, metadata: { a: 1 } })).toBe('new-turn');
  });

  it('O-8 answers an interrupted task, also twice in the same words', () => {
    expect(turn(TaskState.TASK_STATE_INPUT_REQUIRED, other)).toBe('answer');
    const history = [sampleMessage(), replyMessage('sure?'), sampleMessage({ messageId: 'm-3' })];
    expect(turn(TaskState.TASK_STATE_INPUT_REQUIRED, again, orloj, history)).toBe('answer');
  });

  it('O-8 is a new turn after the task has ended', () => {
    expect(turn(TaskState.TASK_STATE_COMPLETED, other)).toBe('new-turn');
    expect(turn(TaskState.TASK_STATE_REJECTED, other)).toBe('new-turn');
  });

  it('O-8 is refused while the task is at work on another', () => {
    expect(errorOf(() => turn(TaskState.TASK_STATE_WORKING, other)).kind).toBe('unsupported-operation');
  });

  it('O-13 is refused when the task was canceled', () => {
    for (const message of [again, other]) {
      expect(errorOf(() => turn(TaskState.TASK_STATE_CANCELED, message)).kind).toBe('task-canceled');
    }
  });

  it('S-3 goes on with the thread, in the same words too, but a repeated call waits for its turn', () => {
    for (const message of [again, other]) {
      expect(turn(TaskState.TASK_STATE_COMPLETED, message, society)).toBe('new-turn');
      expect(turn(TaskState.TASK_STATE_CANCELED, message, society)).toBe('new-turn');
      expect(turn(TaskState.TASK_STATE_INPUT_REQUIRED, message, society)).toBe('answer');
    }
    expect(turn(TaskState.TASK_STATE_WORKING, again, society)).toBe('join');
  });
});

describe('what a turn has added', () => {
  it('S-4 is new artifacts, new chunks and artifacts said anew', () => {
    const artifact = (artifactId: string, ...texts: string[]) =>
      sampleArtifact({ artifactId, parts: texts.map(textPart) });
    const before = [artifact('same', 'a'), artifact('grown', 'a'), artifact('anew', 'a', 'b')];
    const after = [
      artifact('same', 'a'),
      artifact('grown', 'a', 'b'),
      artifact('anew', 'x', 'b'),
      artifact('new', 'n'),
    ];
    expect(turnArtifacts(after, before)).toEqual([
      artifact('grown', 'b'),
      artifact('anew', 'x', 'b'),
      artifact('new', 'n'),
    ]);
    expect(turnArtifacts(after)).toEqual(after);
  });
});

describe('the history of a conversation', () => {
  it('L-8 O-8 has every message and every reply, once', () => {
    const said = taskIn(TaskState.TASK_STATE_COMPLETED, {}, replyMessage('one'));
    const shown = taskIn(TaskState.TASK_STATE_COMPLETED, { id: 't-2', artifacts: [sampleArtifact()] });
    const history = conversationHistory([said, shown]);
    expect(history.map(({ role, messageId }) => [role, messageId])).toEqual([
      [Role.ROLE_USER, 'm-1'],
      [Role.ROLE_AGENT, 'm-2'],
      [Role.ROLE_USER, 'm-1'],
      [Role.ROLE_AGENT, 't-2-r'],
    ]);
    expect(history[3]?.parts).toEqual([textPart('chunk')]);
  });
});
