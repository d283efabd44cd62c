import { TaskState } from './model.js';
import { TaskFold } from './task-fold.js';
import { opening, replyMessage } from '../../../test/support/a2a/profile.js';
import {
  artifactEvent,
  sampleArtifact,
  sampleMessage,
  statusEvent,
  textPart,
} from '../../../test/support/a2a/samples.js';

describe('a task folded from its log', () => {
  it('has the last status, every message and the artifacts so far', () => {
    const fold = new TaskFold();
    fold.apply(opening({ metadata: { a: 1 } }));
    fold.apply(statusEvent(TaskState.TASK_STATE_WORKING, replyMessage('Searching…', { messageId: 'm-9' })));
    fold.apply(artifactEvent(sampleArtifact()));
    fold.apply(artifactEvent(sampleArtifact({ parts: [textPart('more')] }), true));
    const end = statusEvent(TaskState.TASK_STATE_COMPLETED, replyMessage('Done'));
    if (end.$case === 'statusUpdate') end.value.metadata = { b: 2 };
    fold.apply(end);
    expect(fold.task()).toMatchObject({
      id: 'task-1',
      contextId: 'context-1',
      status: { state: TaskState.TASK_STATE_COMPLETED, message: { messageId: 'm-2' } },
      history: [sampleMessage(), { messageId: 'm-9' }, { messageId: 'm-2' }],
      artifacts: [{ artifactId: 'a-1', parts: [textPart('chunk'), textPart('more')] }],
      metadata: { a: 1, b: 2 },
    });
  });
});
