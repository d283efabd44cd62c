import type { AnswerContext, Shape } from '../codecs/codec.js';
import { type Artifact, type Message, Role, type Task, TaskState } from '../model.js';
import { USAGE, tokenUsage } from '../reply.js';
import { historyTail, isInterrupted, isTerminal } from '../task.js';
import { ArbiterStream } from './arbiter-stream.js';
import { replyOf, takeApart, textArtifact } from './arbiter-artifacts.js';

/** What Arbiter's clients expect of a task and of the frames of a stream. */
export const ARBITER_SHAPE: Shape = {
  task: shapeTask,
  stream: (context) => {
    const stream = new ArbiterStream(context.after ?? 0);
    return (item) => stream.next(item);
  },
};

/** the reply as `<taskId>-r`, a history only with it, and Arbiter's metadata. */
function shapeTask(task: Task, { agentId, historyLength }: AnswerContext): Task {
  const { id, status, artifacts } = task;
  const state = status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const message = isInterrupted(state) ? status?.message : replyOf(task);
  return {
    ...task,
    status: status && { ...status, message },
    artifacts: shapeArtifacts(id, artifacts),
    history: message ? historyTail(dialogue(task, message), historyLength) : [],
    metadata: shapeMetadata(task.metadata, agentId),
  };
}

function shapeArtifacts(taskId: string, artifacts: readonly Artifact[]): Artifact[] {
  const pieces = artifacts.map(takeApart);
  const text = pieces.map((piece) => piece.text).join('');
  const others = pieces.flatMap(({ other }) => (other ? [other] : []));
  return text === '' ? others : [textArtifact(taskId, text), ...others];
}

/** The message of the user and the answer of the agent, without its texts in between. */
function dialogue({ history, status }: Task, reply: Message): Message[] {
  const isOver = isTerminal(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);
  const answers = history.filter(
    ({ role }, index) => role === Role.ROLE_USER || history[index + 1]?.role === Role.ROLE_USER,
  );
  return isOver || answers.at(-1)?.messageId !== reply.messageId ? [...answers, reply] : answers;
}

function shapeMetadata(metadata: Task['metadata'], agentId: string): Task['metadata'] {
  const { input, output } = tokenUsage(metadata);
  const { [USAGE]: _usage, ...others } = metadata ?? {};
  return {
    ...others,
    'x-arbiter.agent_id': agentId,
    'x-arbiter.input_tokens': input,
    'x-arbiter.output_tokens': output,
  };
}
