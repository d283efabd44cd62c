import { type Agent, type Message, type Task, TaskState } from '@baton/a2a';
import type { DeadLetter, DeadLetterStore, DeadMessage, RunQuota } from '@baton/database';
import { v7 as uuid } from 'uuid';
import { ensureTask, type TaskMaker } from '../turns/ensure-task.js';

/** The key of the new task's metadata that says where it comes from. */
const METADATA_KEY = 'baton.redelivery';

/** What a redelivery needs of its surroundings. */
export interface RedeliveryPorts extends TaskMaker {
  letters: Pick<DeadLetterStore, 'find' | 'readMessage' | 'reserve' | 'confirm'>;
  findAgent: (tenantId: string, agentId: string) => Promise<Agent | undefined>;
}

/**
 * `redelivered`: it was before, as `taskId`. `expired`: its task is no longer kept, so nobody knows the message.
 * `agent-gone`: nobody would answer.
 */
export type Redelivered =
  | { ok: true; taskId: string; letter: DeadLetter }
  | { ok: false; reason: 'not-found' | 'expired' | 'agent-gone' }
  | { ok: false; reason: 'redelivered'; taskId: string };

/**
 * Say the message of a dead run again, as a new task of the same agent in the same context: terminal is final, so
 * the failed task stays as it is. The new task's id is kept in the dead letter before the task is made, so that
 * calls at the same time, and one that comes after a crash in between, make one task and not two.
 *
 * @param options.again also if it was redelivered before
 */
export async function redeliver(
  ports: RedeliveryPorts,
  { tenantId, runId }: Pick<DeadLetter, 'tenantId' | 'runId'>,
  { again = false, quota }: { again?: boolean; quota?: RunQuota } = {},
): Promise<Redelivered> {
  const found = await ports.letters.find(tenantId, runId);
  if (!found) return { ok: false, reason: 'not-found' };
  const said = await ports.letters.readMessage(tenantId, runId);
  const agent = await ports.findAgent(tenantId, found.agentId);
  if (!isOpen(found) && !again) return before(found);
  if (!said) return { ok: false, reason: 'expired' };
  if (!agent || agent.closed) return { ok: false, reason: 'agent-gone' };
  const letter = await ports.letters.reserve(tenantId, runId, uuid(), again);
  if (!letter?.redeliveredTaskId) return { ok: false, reason: 'not-found' };
  if (!isOpen(letter)) return before(letter);
  const taskId = letter.redeliveredTaskId;
  const task = newTask(letter, said, taskId);
  await ensureTask(ports, { tenantId, agent, task, extensions: said.extensions, quota });
  await ports.letters.confirm(tenantId, runId, taskId);
  return { ok: true, taskId, letter };
}

/** Whether its task is yet to be made. */
const isOpen = (letter: DeadLetter): boolean => letter.redeliveredAt === null;

const before = ({ redeliveredTaskId }: DeadLetter): Redelivered => ({
  ok: false,
  reason: 'redelivered',
  taskId: redeliveredTaskId ?? '',
});

function newTask(letter: DeadLetter, { message, contextId }: DeadMessage, id: string): Task {
  const { taskId: deadTaskId, runId } = letter;
  const again: Message = {
    ...message,
    messageId: uuid(),
    taskId: id,
    contextId,
    referenceTaskIds: [...message.referenceTaskIds, deadTaskId],
  };
  return {
    id,
    contextId,
    status: {
      state: TaskState.TASK_STATE_SUBMITTED,
      message: undefined,
      timestamp: new Date().toISOString(),
    },
    artifacts: [],
    history: [again],
    metadata: { [METADATA_KEY]: { taskId: deadTaskId, runId } },
  };
}
