import { AccessTokens, cancelRemoteCalls, SecretGuard, SecretReader } from '@baton/agents';
import { Environment } from '@baton/config';
import { type CanceledCalls, JournalStore, RemoteCallStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';

/** Tasks at a time. Each may call up to 16 servers. */
const LIMIT = 20;
/** A task whose servers did not get the cancel is claimed again after this time, in ms: longer than the calls take. */
const AGAIN_MS = 60_000;

/**
 * Cancels calls that tool servers execute as tasks of their own, of tasks that were canceled while no worker had them. One worker does it for all
 * (`SweepLeader`). If it dies, another one takes the task again. A server is asked for a day.
 */
@Injectable()
export class CanceledRemoteCalls extends RepeatedWork {
  constructor(
    private readonly calls: RemoteCallStore,
    private readonly journals: JournalStore,
    private readonly agents: AgentDirectory,
    private readonly secrets: SecretReader,
    private readonly tokens: AccessTokens,
    private readonly outbound: Outbound,
    private readonly limits: LimitsService,
    private readonly environment: Environment,
    leader: SweepLeader,
    private readonly logger: Logger,
  ) {
    super({ log: { name: 'The cancel of calls at tool servers', logger } });
    leader.on('canceledRemoteCalls', () => this.wake());
  }

  async runOnce(): Promise<void> {
    const canceled = await this.calls.takeCanceled(LIMIT, AGAIN_MS);
    await Promise.all(canceled.map((task) => this.cancel(task)));
  }

  private async cancel({ tenantId, taskId, agentId, owner }: CanceledCalls): Promise<void> {
    const [agent, stored] = await Promise.all([
      this.agents.findIncludingDeleted(tenantId, agentId),
      this.journals.read(tenantId, taskId),
    ]);
    const ports = {
      outbound: this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId)),
      secrets: new SecretGuard(this.secrets, tenantId, this.tokens, {
        id: taskId,
        owner,
        agent: agent?.slug ?? '',
      }),
      environment: this.environment,
      logger: this.logger,
    };
    if (await cancelRemoteCalls(agent, stored, ports)) await this.calls.forget(tenantId, taskId);
  }
}
