import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type DeadLetter, DeadLetterStore, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { explainQuota } from '../turns/ensure-task.js';
import { type Redelivered, redeliver } from './redelivery.js';

/** A tenant's dead letters, for the tenant itself. */
@Injectable()
export class DeadLetters {
  constructor(
    private readonly letters: DeadLetterStore,
    private readonly tasks: TaskStore,
    private readonly directory: AgentDirectory,
    private readonly dispatcher: RunDispatcher,
    private readonly environment: Environment,
  ) {}

  /** One page, the latest death first. */
  async list(
    tenantId: string,
    limit: number,
    after?: Pick<DeadLetter, 'diedAt' | 'runId'>,
  ): Promise<DeadLetter[]> {
    return this.letters.list(tenantId, { limit, after });
  }

  /**
   * Say the message again as a new task, under the tenant's limits.
   * @throws ProtocolError `limit-exceeded` if too many of its tasks wait
   */
  async redeliver(tenantId: string, runId: string, again: boolean): Promise<Redelivered> {
    const quota = await this.dispatcher.quotaFor(tenantId);
    const ports = {
      letters: this.letters,
      tasks: this.tasks,
      findAgent: async (tenant: string, agentId: string) => this.directory.find(tenant, agentId),
      maxAttempts: this.environment.maxAttempts,
      enqueue: this.dispatcher.enqueue.bind(this.dispatcher),
    };
    return redeliver(ports, { tenantId, runId }, { again, quota }).catch(explainQuota(quota));
  }
}

/** What a caller is told whose redelivery did not make a task. */
export function refusalOf(refused: Exclude<Redelivered, { ok: true }>): ProtocolError {
  if (refused.reason === 'redelivered') {
    return new ProtocolError(
      'unsupported-operation',
      `it was redelivered before, as task ${refused.taskId}; add ?again=true to do it once more`,
      { metadata: { taskId: refused.taskId } },
    );
  }
  if (refused.reason === 'agent-gone') {
    return new ProtocolError(
      'unsupported-operation',
      'its agent no longer exists or is disabled, so nobody would answer',
    );
  }
  if (refused.reason === 'expired') {
    return new ProtocolError(
      'unsupported-operation',
      'its task is past its retention, and so is the message',
    );
  }
  return new ProtocolError('task-not-found', 'there is no dead letter of that run');
}
