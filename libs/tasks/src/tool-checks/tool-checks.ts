import { type AgentDefinition, type FieldViolation, ProtocolError } from '@baton/a2a';
import { AccessTokens, checkTools, SecretGuard, SecretReader } from '@baton/agents';
import { Environment } from '@baton/config';
import { LimitsService } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';

/** Maximum time of a check, in ms: a server may take its time, and an agent has up to 16. */
const CHECK_MS = 60_000;
/** Maximum number of checks in a process at the same time. A check holds the lists of tools of up to four servers. */
const MAX_CHECKS = 8;
/** When a caller tries again: a check takes some seconds. */
const RETRY_AFTER_SECONDS = 5;

/**
 * Asks MCP servers whether they have the tools that an agent's definition names: with the secrets, the egress rules and the guard
 * of the tenant's turns. A tenant has one check at a time in a process, so that slow servers do not delay other tenants.
 */
@Injectable()
export class ToolChecks {
  private readonly checking = new Set<string>();

  constructor(
    private readonly secrets: SecretReader,
    private readonly tokens: AccessTokens,
    private readonly outbound: Outbound,
    private readonly limits: LimitsService,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /**
   * @returns the servers that were not asked and the tools that the agent does not get, and why
   * @throws ProtocolError `invalid-params` with a violation for each fault; `unavailable` while other checks run
   */
  async check(
    tenantId: string,
    definition: Pick<AgentDefinition, 'runtime' | 'config'>,
  ): Promise<FieldViolation[]> {
    if (this.checking.has(tenantId) || this.checking.size >= MAX_CHECKS) {
      const message = 'another check of tools is under way: try again when it has ended';
      throw new ProtocolError('unavailable', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    this.checking.add(tenantId);
    try {
      const ports = {
        outbound: this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId)),
        secrets: new SecretGuard(this.secrets, tenantId, this.tokens),
        environment: this.environment,
        logger: this.logger,
      };
      const { faults, unchecked } = await checkTools(definition, ports, CHECK_MS);
      if (faults.length === 0) return unchecked;
      const message = faults.map(({ field, description }) => `${field}: ${description}`).join('; ');
      throw new ProtocolError('invalid-params', message, { violations: faults });
    } finally {
      this.checking.delete(tenantId);
    }
  }
}
