import { type Agent, ProtocolError } from '@baton/a2a';
import { type Actor, type HostBinding, hostName, HostStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Inject, Injectable } from '@nestjs/common';
import { domainToASCII } from 'node:url';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { type OfTenant, TenantSettings } from './tenant-settings.js';

/** Longest name of the DNS. */
const MAX_LENGTH = 253;
/** Characters that no host name has. `domainToASCII` would end the name there. */
const FOREIGN = /[^\p{L}\p{M}\p{N}._\-[\]:]/u;

/** The agent to bind a host name to. */
export interface HostTarget {
  /** Slug of the tenant. */
  tenant: string;
  /** Slug or id. */
  agent: string;
  /** Whether callers without a token may call it. */
  public: boolean;
}

/** Host names and the agents that answer there, for operators. */
@Injectable()
export class BoundHosts {
  constructor(
    private readonly settings: TenantSettings,
    private readonly hosts: HostStore,
    @Inject(AgentDirectory)
    private readonly agents: { find(tenantId: string, name: string): Promise<Agent | undefined> },
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'publishControl'>,
  ) {}

  /** By name, of one tenant or of all. @throws ProtocolError `not-found` */
  async list(tenant?: string): Promise<OfTenant<HostBinding>[]> {
    if (tenant === undefined) return this.settings.named(await this.hosts.list());
    const { id, slug } = await this.settings.find(tenant);
    return (await this.hosts.list(id)).map((binding) => ({ ...binding, tenant: slug }));
  }

  /**
   * Bind the host to the agent, or change its binding.
   * @throws ProtocolError `invalid-params`, `not-found`, `conflict` if the host is another tenant's
   */
  async bind(text: string, target: HostTarget, by: Actor): Promise<OfTenant<HostBinding>> {
    const host = parseHost(text);
    const { id: tenantId, slug } = await this.settings.find(target.tenant);
    const agent = await this.agents.find(tenantId, target.agent);
    if (!agent) throw ProtocolError.invalidParams('agent', `the tenant "${slug}" has no such agent`);
    const bound = await this.hosts.bind({ host, tenantId, agent: agent.slug, public: target.public }, by);
    if (!bound) {
      throw new ProtocolError('conflict', 'The host is bound to another tenant: unbind it first');
    }
    await this.inform(tenantId);
    return { ...bound, tenant: slug };
  }

  /** @returns the binding there was @throws ProtocolError `invalid-params`, `not-found` */
  async unbind(text: string, by: Actor): Promise<HostBinding> {
    const binding = await this.hosts.unbind(parseHost(text), by);
    if (!binding) throw new ProtocolError('not-found', 'The host is not bound');
    await this.inform(binding.tenantId);
    return binding;
  }

  /** Processes that miss the control message notice within a second. */
  private async inform(tenantId: string): Promise<void> {
    await this.messaging.publishControl({ type: 'catalog-changed', tenantId }).catch(() => undefined);
  }
}

/**
 * The host name as it is stored: in lower case, without a port, an international name in its ASCII form, as clients send it.
 * @throws ProtocolError `invalid-params` unless it can be a name or an address
 */
export function parseHost(text: string): string {
  const name = FOREIGN.test(text) ? '' : domainToASCII(hostName(text));
  if (name !== '' && name.length <= MAX_LENGTH) return name;
  throw ProtocolError.invalidParams(
    'host',
    `"${text.slice(0, 300)}" cannot be a host: give the name alone, such as agents.example.com, without https:// and path`,
  );
}
