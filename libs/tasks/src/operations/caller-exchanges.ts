import type { AgentDefinition, CallContext } from '@baton/a2a';
import { type OAuthServer, oauthServers } from '@baton/agents';
import { TokenExchanges } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { actorOf } from '../core/actor.js';

/**
 * The servers at which an agent signs its callers in by an exchange of their tokens. The token is there only while the message is accepted,
 * so it is exchanged then, and not by the worker.
 */
@Injectable()
export class CallerExchanges {
  /** Cached, because reading the settings of an agent takes longer than the rest. */
  private readonly servers = new WeakMap<AgentDefinition, OAuthServer[]>();

  constructor(private readonly exchanges: TokenExchanges) {}

  /**
   * Signs the sender of a message in where its agent needs it. Never rejects.
   * @param taskId the task that the message continues; empty: it makes one
   */
  async ensure(call: CallContext, taskId: string): Promise<void> {
    const { subject, tenantId, agent } = call;
    if (!subject) return;
    const caller = { tenantId, by: actorOf(call), subject, taskId: taskId || null };
    await Promise.all(
      this.serversOf(agent.definition).map((server) => this.exchanges.ensureSignedIn(caller, server)),
    );
  }

  private serversOf(definition: AgentDefinition): OAuthServer[] {
    let found = this.servers.get(definition);
    if (!found) {
      found = readServers(definition).filter(({ settings }) => settings.credentials === 'exchange');
      this.servers.set(definition, found);
    }
    return found;
  }
}

/** None if the settings are not valid: the task then reports the error. */
function readServers(definition: AgentDefinition): OAuthServer[] {
  try {
    return oauthServers(definition);
  } catch {
    return [];
  }
}
