import { OPERATIONS, type OperationName, ProtocolError, SPEC_RULES, isUuid } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { traceparent } from '../../core/call-headers.js';
import type { Exchange, RequestContext } from '../../core/request-context.js';
import { ReadMemoryPool } from '../../http/read-memory.js';
import { logContextOf } from '../../http/request-log.js';

/** Requests are the tasks of Arbiter's clients, and of everybody else in the tenant. */
const PROFILE = 'arbiter';

/** Makes the operations callable for a task of the tenant, whichever agent it belongs to. */
@Injectable()
export class RequestCalls {
  constructor(
    private readonly agents: AgentDirectory,
    private readonly memory: ReadMemoryPool,
  ) {}

  /** Throws `task-not-found` for an unknown id or another tenant's. */
  async callFor(operation: OperationName, id: string, { request, reply }: Exchange): Promise<RequestContext> {
    const { tenantId, tokenId, scopes } = callerOf(request);
    logContextOf(request).taskId = id;
    const agent = isUuid(id) ? await this.agents.ofTask(tenantId, PROFILE, id) : undefined;
    if (!agent) throw ProtocolError.taskNotFound(id);
    return {
      tenantId,
      tokenId,
      scopes,
      requestId: request.id,
      agent,
      profile: PROFILE,
      rules: { ...SPEC_RULES, taskScope: 'tenant' },
      version: '1.0',
      extensions: [],
      traceparent: traceparent(request),
      memory: this.memory.leaseFor(tenantId, reply.raw, OPERATIONS[operation].access === 'read'),
    };
  }
}
