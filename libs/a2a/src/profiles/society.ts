/**
 * `society`: Society, at the root. One method of 0.1, `tasks/send`, whose id names a thread: each send is the
 * thread's next turn. A client gives up after 30 s, so the answer is then the task as it is.
 */
import type { Agent, PushPolicy } from '../agent.js';
import { buildForeignCard } from '../cards/agent-card.js';
import { type AnswerContext, defineCodec } from '../codecs/codec.js';
import { v0_1 } from '../codecs/v0_1.js';
import { type Artifact, type Part, type Task, TaskState } from '../model.js';
import { joinTexts, textOf, textPart } from '../reply.js';
import { turnArtifacts } from '../turn-of-alias.js';
import { ROOT_ERRORS, defineProfile } from './profile.js';

const WIRE = v0_1(writeTask);
const { sendMessage } = WIRE.operations;

const CODEC = defineCodec({
  ...WIRE,
  onlyMethods: ['tasks/send'],
  operations: {
    ...WIRE.operations,
    sendMessage: {
      ...sendMessage,
      // The answer has the artifacts of this turn alone.
      encode: (result, context) =>
        result.$case === 'task'
          ? writeTask(
              { ...result.value, artifacts: turnArtifacts(result.value.artifacts, result.priorArtifacts) },
              context,
            )
          : sendMessage.encode(result, context),
    },
  },
});

export const SOCIETY_PROFILE = defineProfile({
  name: 'society',
  paths: ['/'],
  codecs: [CODEC],
  versions: ['0.1', '0.3', '1.0'],
  errors: ROOT_ERRORS,
  bodyLimit: 'small',
  parts: { always: ['text'], refusal: 'invalid-params' },
  rules: {
    reply: 'task',
    wait: 'limited',
    clientTaskIds: { joins: 'working-task', canceled: 'new-turn' },
  },
  card: { path: '/.well-known/agent.json', encode: encodeRootCard },
});

/** An agent's question ends the turn: the thread's next message answers it. No run waits for it. */
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
 * A task as Society writes it: the id is the thread's, the status message a string, all output of an agent text. The message of the
 * last status is the reply, or the reason of a failure.
 */
function writeTask({ id, status, artifacts }: Task, { clientTaskId }: AnswerContext): unknown {
  const state = STATES[status?.state ?? TaskState.TASK_STATE_UNSPECIFIED] ?? 'submitted';
  const statusParts = status?.message?.parts ?? [];
  const isReply = state === 'completed' && statusParts.length > 0;
  return {
    id: clientTaskId ?? id,
    status: { state, message: isReply ? '' : textOf(statusParts.map(asText)) },
    messages: [],
    artifacts: [...artifacts.map(writeArtifact), ...(isReply ? [{ parts: writeParts(statusParts) }] : [])],
  };
}

const writeArtifact = ({ name, parts }: Artifact) => ({ ...(name && { name }), parts: writeParts(parts) });

const writeParts = (parts: Task['artifacts'][number]['parts']) =>
  joinTexts(parts.map(asText)).map((part) => ({ type: 'text', text: textOf([part]) }));

/** Society supports only text: data is shown as JSON, a file as its address or name. */
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

/**
 * The card of the agent at the root of a host: the flat shape, in which clients of Society and of 0.2 and 0.3
 * find their members, and the root as its only address.
 */
function encodeRootCard(agent: Agent, origin: string, push?: PushPolicy): Record<string, unknown> {
  const url = `${origin.replace(/\/+$/, '')}/`;
  return buildForeignCard(agent, origin, url, push);
}
