/**
 * `orloj`: Orloj. 0.1 with ids chosen by the caller, each a task that can be joined, answered and continued;
 * 0.3 and 1.0 beside it. Every agent of a tenant is an agent system, unless it is not enabled.
 */
import { checkFirst, defineCodec } from '../../codecs/define-codec.js';
import { METHODS } from '../../codecs/v0_1/decode.js';
import { taskFrames, v0_1Family } from '../../codecs/v0_1/index.js';
import { V0_3_CODEC } from '../../codecs/v0_3/index.js';
import { V1_0_CODEC } from '../../codecs/v1_0/index.js';
import { withReply } from '../../reply.js';
import { agentOfMetadata } from '../agent-choice.js';
import { defineProfile } from '../profile.js';
import { assertStringMetadata } from './string-metadata.js';
import { writeTask } from './write-task.js';

const V0_1_CODEC = defineCodec({
  ...v0_1Family(writeTask),
  methods: checkFirst(METHODS, assertStringMetadata),
  shape: { task: (task, { historyLength }) => withReply(task, historyLength), stream: repliedFrames },
  rules: { streamEnds: 'with-task', history: 'conversation' },
});

export const ORLOJ_PROFILE = defineProfile({
  name: 'orloj',
  paths: ['/a2a', '/v1/agent-systems/:agent/a2a', '/v1/agents/:agent/a2a'],
  codecs: [V0_1_CODEC, V0_3_CODEC, V1_0_CODEC],
  versions: ['0.1', '0.3', '1.0'],
  errors: {
    'agent-not-found': { code: -32003, http: 200 },
    'task-not-found': {
      message: ({ detail: { metadata } }) =>
        metadata?.deletedAt === undefined
          ? 'task not found'
          : `task not found: it ended at ${metadata.endedAt} and was deleted after ${metadata.retentionDays} days of retention`,
      data: ({ detail: { metadata } }) => ({
        task_id: metadata?.taskId ?? '',
        ...(metadata?.deletedAt && { ended_at: metadata.endedAt, deleted_at: metadata.deletedAt }),
      }),
    },
    'task-canceled': { code: -32002, reason: 'TASK_CANCELLED', message: () => 'task cancelled' },
  },
  bodyLimit: 'small',
  chooseAgent: agentOfMetadata('agent', 'target'),
  onlyEnabledAgents: true,
  rules: {
    reply: 'task',
    agentThrew: 'failed-task',
    taskScope: 'tenant',
    clientTaskIds: { joins: 'any-task', canceled: 'refused' },
    cancelAgain: 'returns-it',
    cancelMetadata: 'kept',
  },
});

/** Frames of the whole task, with the reply of a completed one in its status. */
function repliedFrames(): ReturnType<typeof taskFrames> {
  const frames = taskFrames();
  return (item) =>
    frames(item).map((frame) =>
      frame.payload.$case === 'task'
        ? { ...frame, payload: { $case: 'task', value: withReply(frame.payload.value) } }
        : frame,
    );
}
