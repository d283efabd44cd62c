/**
 * `langsmith`: LangSmith Agent Server. 0.3 as it stands, with replies always in artifacts that have a name,
 * an `Accept` header that fits the method, and no notifications.
 */
import { type Shape, defineCodec } from '../codecs/codec.js';
import { V0_3 } from '../codecs/v0_3.js';
import { V1_0 } from '../codecs/v1_0.js';
import { type Artifact, type Message, type Task, TaskState } from '../model.js';
import type { StreamItem } from '../operation.js';
import { joinTexts } from '../reply.js';
import { defineProfile } from './profile.js';

const REPLY_NAME = 'Assistant Response';

/** A reply that was a message alone becomes an artifact; every artifact has a name and no torn text. */
const shape: Shape = {
  task: (task) => ({
    ...task,
    artifacts: artifactsOf(task).map((artifact) => named({ ...artifact, parts: joinTexts(artifact.parts) })),
  }),
  stream({ after = 0 }) {
    // A resumed stream may have had its artifacts before.
    let hasArtifacts = after > 0;
    return (item) => {
      const { payload } = item;
      if (payload.$case === 'task') hasArtifacts ||= payload.value.artifacts.length > 0;
      if (payload.$case === 'artifactUpdate') {
        hasArtifacts = true;
        const { artifact } = payload.value;
        return artifact ? [withArtifact(item, named(artifact))] : [item];
      }
      return hasArtifacts ? [item] : [...replyOf(item), item];
    };
  },
};

export const LANGSMITH_PROFILE = defineProfile({
  name: 'langsmith',
  paths: ['/a2a/:agent'],
  codecs: [defineCodec({ ...V0_3, shape }), defineCodec({ ...V1_0, shape })],
  versions: ['0.3', '1.0'],
  absentId: 'refused',
  accept: 'by-method',
  parts: { always: ['text', 'data'], filesIfDeclared: true, refusal: 'content-type-not-supported' },
  rules: { reply: 'task' },
});

const named = (artifact: Artifact): Artifact =>
  artifact.name ? artifact : { ...artifact, name: REPLY_NAME };

function artifactsOf({ id, status, artifacts }: Task): Artifact[] {
  const isMessage = artifacts.length === 0 && status?.state === TaskState.TASK_STATE_COMPLETED;
  return isMessage && status.message ? [replyArtifact(id, status.message)] : artifacts;
}

const replyArtifact = (taskId: string, { parts }: Message): Artifact => ({
  artifactId: `${taskId}-reply`,
  name: REPLY_NAME,
  description: '',
  parts,
  metadata: undefined,
  extensions: [],
});

const withArtifact = (item: StreamItem, artifact: Artifact): StreamItem =>
  item.payload.$case === 'artifactUpdate'
    ? { ...item, payload: { $case: 'artifactUpdate', value: { ...item.payload.value, artifact } } }
    : item;

/** The artifact that goes before a status which completes the task with a message. */
function replyOf({ sequence, payload }: StreamItem): StreamItem[] {
  if (payload.$case !== 'statusUpdate') return [];
  const { taskId, contextId, status } = payload.value;
  if (status?.state !== TaskState.TASK_STATE_COMPLETED || !status.message) return [];
  const artifact = replyArtifact(taskId, status.message);
  const value = { taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined };
  // A reader of this frame has the status still to come.
  return [{ sequence: sequence - 1, payload: { $case: 'artifactUpdate', value } }];
}
