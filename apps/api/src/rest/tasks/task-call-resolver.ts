import { isUuid, type OperationName, OPERATIONS, ProtocolError, SPEC_RULES, type Task } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { traceparent } from '../../core/call-headers.js';
import type { RequestContext } from '../../core/call-resolver.js';
import { CallRunner } from '../../core/call-runner.js';
import { ReadMemoryPool } from '../../http/read-memory-pool.js';
import { type Exchange, logContextOf } from '../../http/requests.js';

/** Clients of this profile choose ids for their tasks. `/v1/tasks` accepts these ids, too. */
const PROFILE = 'arbiter';

/** Finds the task that a path of `/v1/tasks` names, and makes the context of an operation on it. */
@Injectable()
export class TaskCallResolver {
  constructor(
    private readonly agents: AgentDirectory,
    private readonly memory: ReadMemoryPool,
    private readonly runner: CallRunner,
  ) {}

  /**
   * The context of a call about a task of any agent of the tenant. Throws `task-not-found` for an unknown id or another
   * tenant's.
   */
  async resolve(operation: OperationName, id: string, exchange: Exchange): Promise<RequestContext> {
    const { request } = exchange;
    const { tenantId, principal, scopes, agents } = callerOf(request);
    const { access } = OPERATIONS[operation];
    logContextOf(request).taskId = id;
    const agent = isUuid(id)
      ? await this.agents.ofTask({ tenantId, principal, scopes, agents }, PROFILE, id)
      : undefined;
    if (!agent) throw ProtocolError.taskNotFound(id);
    return {
      tenantId,
      principal,
      scopes,
      agents,
      access,
      requestId: request.id,
      address: request.ip,
      agent,
      profile: PROFILE,
      rules: { ...SPEC_RULES, taskScope: 'tenant' },
      version: '1.0',
      extensions: [],
      traceparent: traceparent(request),
      memory: this.memory.leaseFor(exchange, access),
    };
  }

  /** The context of a call, with the task without its history. Throws `task-not-found` for callers that do not see the task. */
  async resolveSeen(id: string, exchange: Exchange): Promise<{ call: RequestContext; task: Task }> {
    const call = await this.resolve('getTask', id, exchange);
    const query = { tenant: '', id, historyLength: 0 };
    const task = await this.runner.run({ operation: 'getTask', request: query }, call, exchange);
    return { call, task };
  }
}
