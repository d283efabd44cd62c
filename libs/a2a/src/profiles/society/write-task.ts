import { textOf } from '../../agent-events.js';
import type { WriteTask } from '../../codecs/v0_1/index.js';
import { type Artifact, type Part, type Task, TaskState } from '../../model.js';
import { joinTexts, textPart } from '../../reply.js';

/** An agent's question ends the turn: the thread's next message answers it, and nobody waits meanwhile. */
const STATES: Partial<Record<TaskState, string>> = {
  [TaskState.TASK_STATE_WORKING]: 'working',
  [TaskState.TASK_STATE_COMPLETED]: 'completed',
  [TaskState.TASK_STATE_INPUT_REQUIRED]: 'completed',
  [TaskState.TASK_STATE_AUTH_REQUIRED]: 'completed',
  [TaskState.TASK_STATE_FAILED]: 'failed',
  [TaskState.TASK_STATE_REJECTED]: 'failed',
  [TaskState.TASK_STATE_CANCELED]: 'cancelled',
};

/**
 * A task as Society writes it: the id is the thread's, the status message a string, everything an agent says
 * text. What the agent says with its last status is its reply; where it failed, it is the reason.
 */
export const writeTask: WriteTask = ({ id, status, artifacts }, { clientTaskId }) => {
  const state = STATES[status?.state ?? TaskState.TASK_STATE_UNSPECIFIED] ?? 'submitted';
  const said = status?.message?.parts ?? [];
  const isReply = state === 'completed' && said.length > 0;
  return {
    id: clientTaskId ?? id,
    status: { state, message: isReply ? '' : textOf(said.map(asText)) },
    messages: [],
    artifacts: [...artifacts.map(writeArtifact), ...(isReply ? [{ parts: writeParts(said) }] : [])],
  };
};

const writeArtifact = ({ name, parts }: Artifact) => ({ ...(name && { name }), parts: writeParts(parts) });

const writeParts = (parts: Task['artifacts'][number]['parts']) =>
  joinTexts(parts.map(asText)).map((part) => ({ type: 'text', text: textOf([part]) }));

/** Society knows no other parts: data as JSON, a file by its address or name. */
function asText({ content, filename, mediaType }: Part): Part {
  switch (content?.$case) {
    case 'text':
    case 'url':
      return textPart(content.value);
    case 'raw':
      return textPart(`[${filename || 'file'}, ${mediaType || 'bytes'}: ${content.value.length} bytes]`);
    default:
      return textPart(JSON.stringify(content?.value ?? null));
  }
}
