import {
  type Agent,
  ProtocolError,
  type Reacher,
  type Task,
  assertWritable,
  canSee,
  visibleTasks,
} from '@baton/a2a';
import { type Actor, type DeadLetter, DeadLetterStore, type DeadMessage } from '@baton/database';
import { Inject, Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';

/** The key of the new task's metadata that names the failed run. */
const METADATA_KEY = 'baton.redelivery';

/**
 * The outcome of a redelivery. `redelivered`: it was redelivered before, as `taskId`. `expired`: the retention of the
 * task is over, and its message is gone. `agent-gone`: the agent is disabled or deleted.
 */
export type Redelivered =
  | { ok: true; taskId: string; letter: DeadLetter }
  | { ok: false; reason: 'not-found' | 'expired' | 'agent-gone' }
  | { ok: false; reason: 'redelivered'; taskId: string };

/** Runs that have used up their attempts: list them, and send their messages again. */
@Injectable()
export class DeadLetters {
  constructor(
    private readonly letters: DeadLetterStore,
    @Inject(AgentDirectory)
    private readonly agents: { find(tenantId: string, id: string): Promise<Agent | undefined> },
    private readonly acceptance: TurnAcceptance,
  ) {}

  /** One page of those that the caller sees, the latest first. */
  async list(
    caller: Reacher & { tenantId: string },
    limit: number,
    after?: Pick<DeadLetter, 'diedAt' | 'runId'>,
  ): Promise<DeadLetter[]> {
    const { tenantId, agents } = caller;
    return this.letters.list(tenantId, {
      limit,
      after,
      own: visibleTasks(caller),
      agentIds: agents?.ids,
    });
  }

  /**
   * Send the message of a dead run again, as a new task of the same agent, owner and context. The failed task stays as
   * it is: terminal is final. The dead letter stores the id of the new task before the task is made. So concurrent
   * calls, and a call after a crash, make one task.
   * @param again also if it was redelivered before
   * @param caller must reach the task that died; unset = an operator asks
   * @param by for the audit log
   * @throws ProtocolError `limit-exceeded` if the tenant's quota has no room, `forbidden` for a task that the caller may
   * only see
   */
  async redeliver(
    tenantId: string,
    runId: string,
    again: boolean,
    caller: Reacher | undefined,
    by: Actor,
  ): Promise<Redelivered> {
    const found = await this.letters.find(tenantId, runId);
    if (!found || (caller && !canSee(caller, found))) return { ok: false, reason: 'not-found' };
    if (caller) assertWritable(caller, found.owner);
    const stored = await this.letters.readMessage(tenantId, runId);
    const agent = await this.agents.find(tenantId, found.agentId);
    if (!isOpen(found) && !again) return redeliveredBefore(found);
    if (!stored) return { ok: false, reason: 'expired' };
    if (!agent || agent.status) return { ok: false, reason: 'agent-gone' };
    const letter = await this.letters.reserve(tenantId, runId, uuid(), again);
    if (!letter?.redeliveredTaskId) return { ok: false, reason: 'not-found' };
    if (!isOpen(letter)) return redeliveredBefore(letter);
    const taskId = letter.redeliveredTaskId;
    const task = taskOf(letter, stored, taskId);
    const { extensions, details } = stored;
    await this.acceptance.ensureTask({ tenantId, owner: letter.owner, agent, task, details, extensions });
    await this.letters.confirm(tenantId, runId, taskId, by);
    return { ok: true, taskId, letter };
  }
}

/** The error for a redelivery that did not make a task. */
export function refusalOf(refused: Exclude<Redelivered, { ok: true }>): ProtocolError {
  if (refused.reason === 'redelivered') {
    return new ProtocolError(
      'unsupported-operation',
      `it was redelivered before, as task ${refused.taskId}; add ?again=true to redeliver it once more`,
      { metadata: { taskId: refused.taskId } },
    );
  }
  if (refused.reason === 'agent-gone') {
    return new ProtocolError('unsupported-operation', 'its agent no longer exists or is disabled');
  }
  if (refused.reason === 'expired') {
    return new ProtocolError('unsupported-operation', 'its task and its message were deleted by retention');
  }
  return new ProtocolError('task-not-found', 'that run is not a dead letter');
}

/** Whether its task is yet to be made. */
const isOpen = (letter: DeadLetter): boolean => letter.redeliveredAt === null;

const redeliveredBefore = ({ redeliveredTaskId }: DeadLetter): Redelivered => ({
  ok: false,
  reason: 'redelivered',
  taskId: redeliveredTaskId ?? '',
});

function taskOf(letter: DeadLetter, { message, contextId }: DeadMessage, id: string): Task {
  const { taskId: deadTaskId, runId } = letter;
  const referenceTaskIds = [...message.referenceTaskIds, deadTaskId];
  const metadata = { [METADATA_KEY]: { taskId: deadTaskId, runId } };
  return newTask({ ...message, messageId: '', referenceTaskIds }, { id, contextId, metadata });
}
