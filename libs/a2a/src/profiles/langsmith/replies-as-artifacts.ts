import type { Shape } from '../../codecs/define-codec.js';
import { type Artifact, type Message, type Task, TaskState } from '../../model.js';
import type { StreamItem } from '../../operation.js';
import { joinTexts } from '../../reply.js';

const REPLY_NAME = 'Assistant Response';

/** A reply that was a message alone becomes an artifact; every artifact has a name and no torn text. */
export const REPLIES_AS_ARTIFACTS: Shape = {
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
  // Whoever has read it still has the status to come.
  return [{ sequence: sequence - 1, payload: { $case: 'artifactUpdate', value } }];
}
