import { messageOf } from '@baton/telemetry';
import { ProtocolError, SLUG } from '@baton/a2a';
import { assertConfig, BUILTIN_AGENTS } from '@baton/agents';
import {
  defaultLimitsOf,
  EGRESS_PATTERN_REMEDY,
  Environment,
  LIMIT_NAMES,
  type LimitName,
  type LimitOverrides,
  MAX_EGRESS_PATTERNS,
  parseEgressPattern,
} from '@baton/config';
import {
  type Actor,
  AuditStore,
  AgentStore,
  type LimitUse,
  NameTakenError,
  type PageAfter,
  type Tenant,
  TenantStore,
  type TenantUsage,
  UsageStore,
} from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { Inject, Injectable } from '@nestjs/common';

/** One limit as it is in force. */
export interface LimitInForce {
  /** null = no limit. */
  value: number | null;
  /** `set` for this tenant, the `default` of the environment, or `none` if neither is set. */
  from: 'set' | 'default' | 'none';
  /** For `storedBytes` while its tasks are being counted: how many are counted. Until then it refuses nothing. */
  countedTasks?: number;
}

export type LimitsInForce = Record<LimitName, LimitInForce>;

/** What an operator changes at once. */
export interface TenantChange {
  /** Slug or id. */
  defaultAgent?: string;
  /** `provider/model`, `none`, or `default` for that of the environment. */
  indexModel?: string;
  indexModelUrl?: string;
  /** Patterns of the only destinations that its agents may call; empty = all. */
  egressAllow?: readonly string[];
  /** Patterns of the destinations that they may not call. */
  egressDeny?: readonly string[];
}

/** A thing of a tenant, with the tenant's slug. */
export type OfTenant<T> = T & { tenant: string };

/** Tenants and what is set for them, for operators. Every method throws ProtocolError `not-found` for an unknown slug. */
@Injectable()
export class TenantSettings {
  constructor(
    private readonly tenants: TenantStore,
    private readonly agents: AgentStore,
    private readonly usages: UsageStore,
    private readonly audit: AuditStore,
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'publishControl'>,
    @Inject(LimitsService) private readonly limitsInUse: Pick<LimitsService, 'forget'>,
    @Inject(Environment) private readonly environment: Pick<Environment, 'defaultLimits' | 'isRetentionSet'>,
  ) {}

  /** By slug, with what they keep in the database. @param page unset = all */
  async list(page?: PageAfter): Promise<Tenant[]> {
    return this.tenants.withStoredBytes(await this.tenants.list(page));
  }

  async find(slug: string): Promise<Tenant> {
    const tenant = await this.tenants.bySlug(slug);
    if (tenant) return tenant;
    throw new ProtocolError('not-found', `There is no tenant "${slug.slice(0, 100)}"`);
  }

  /** Things of several tenants, with the slugs of these. */
  async named<T extends { tenantId: string }>(things: readonly T[]): Promise<OfTenant<T>[]> {
    const slugs = new Map((await this.tenants.list()).map(({ id, slug }) => [id, slug]));
    return things.map((thing) => ({ ...thing, tenant: slugs.get(thing.tenantId) ?? '' }));
  }

  /** @throws ProtocolError `invalid-params`, `conflict` if the slug is taken */
  async create(slug: string, by: Actor): Promise<Tenant> {
    this.assertSlug(slug);
    return this.tenants.create(slug, by).catch((error: unknown) => {
      throw error instanceof NameTakenError ? new ProtocolError('conflict', error.message) : error;
    });
  }

  /** @throws ProtocolError `invalid-params` */
  assertSlug(slug: string): void {
    if (SLUG.test(slug)) return;
    throw ProtocolError.invalidParams(
      'slug',
      'use 1 to 63 lower-case letters, digits or hyphens, beginning and ending with a letter or digit',
    );
  }

  /** In force at once. @throws ProtocolError `invalid-params` that names the field */
  async change(slug: string, change: TenantChange, by: Actor): Promise<Tenant> {
    const { defaultAgent, indexModel, indexModelUrl, egressAllow, egressDeny } = change;
    const { id } = await this.find(slug);
    const data = {
      ...(defaultAgent !== undefined && { defaultAgent: await this.slugOfAgent(id, defaultAgent) }),
      ...(indexModel !== undefined && readIndexModel(indexModel, indexModelUrl)),
      ...(egressAllow && { egressAllow: readPatterns('egress_allow', egressAllow) }),
      ...(egressDeny && { egressDeny: readPatterns('egress_deny', egressDeny) }),
    };
    const changed = (await this.tenants.set(slug, data, by)) ?? (await this.find(slug));
    if (egressAllow ?? egressDeny) await this.announceTerms(id);
    return changed;
  }

  async limits(slug: string): Promise<LimitsInForce> {
    return this.limitsOf(await this.find(slug));
  }

  /** Set limits, or reset them to the default. Other limits do not change. They are in force at once. */
  async changeLimits(
    slug: string,
    values: LimitOverrides,
    defaults: readonly LimitName[],
    by: Actor,
  ): Promise<LimitsInForce> {
    const { id } = await this.find(slug);
    const tenant = (await this.tenants.setLimits(slug, values, defaults, by)) ?? (await this.find(slug));
    await this.announceTerms(id);
    return this.limitsOf(tenant);
  }

  /** What counts against the limits of a tenant now. */
  async limitUse(tenantId: string): Promise<LimitUse> {
    return this.usages.limitUse(tenantId);
  }

  /** What the tenant uses now, and what its agents have used of models in the last days. */
  async usage(slug: string): Promise<TenantUsage> {
    return this.usages.report((await this.find(slug)).id);
  }

  /** The export of a tenant begins: it is recorded before a row has left. */
  async beginExport(slug: string, by: Actor): Promise<Tenant> {
    const tenant = await this.find(slug);
    await this.audit.write(tenant.id, {
      action: 'tenant.export',
      target: { kind: 'tenant', name: slug },
      by,
    });
    return tenant;
  }

  /** Every process reads again what the operator allows the tenant. */
  private async announceTerms(tenantId: string): Promise<void> {
    this.limitsInUse.forget(tenantId);
    // A process that misses the control message reads them again within TOKEN_CACHE_MS.
    await this.messaging.publishControl({ type: 'limits-changed', tenantId }).catch(() => undefined);
  }

  private async limitsOf(tenant: Tenant): Promise<LimitsInForce> {
    const { id, limits: set } = tenant;
    const defaults = defaultLimitsOf(this.environment, tenant);
    const limitOf = (name: LimitName): LimitInForce => {
      const [own, fallback] = [set[name], defaults[name]];
      if (own !== undefined) return { value: own, from: 'set' };
      return { value: fallback, from: fallback === null ? 'none' : 'default' };
    };
    const all = Object.fromEntries(LIMIT_NAMES.map((name) => [name, limitOf(name)])) as LimitsInForce;
    const countedTasks = await this.tenants.countedTasks(id);
    if (all.storedBytes.value === null || countedTasks === undefined) return all;
    return { ...all, storedBytes: { ...all.storedBytes, countedTasks } };
  }

  private async slugOfAgent(tenantId: string, name: string): Promise<string> {
    const builtin = BUILTIN_AGENTS.find(({ slug }) => slug === name);
    const agent = builtin ?? (await this.agents.find(tenantId, name));
    if (agent) return agent.slug;
    throw ProtocolError.invalidParams('default_agent', `the tenant has no agent "${name.slice(0, 100)}"`);
  }
}

function readIndexModel(model: string, url?: string): Pick<Tenant, 'indexModel' | 'indexModelUrl'> {
  if (model === 'default') return { indexModel: null, indexModelUrl: null };
  if (model === 'none') return { indexModel: 'none', indexModelUrl: null };
  try {
    assertConfig({ runtime: 'llm', config: { model, ...(url !== undefined && { baseUrl: url }) } });
  } catch (error) {
    const reason = messageOf(error);
    const named = reason
      .replace('config.model:', 'index_model:')
      .replace('config.baseUrl:', 'index_model_url:');
    throw new ProtocolError('invalid-params', named);
  }
  return { indexModel: model, indexModelUrl: url ?? null };
}

/** The patterns in their plain form. */
function readPatterns(field: string, given: readonly string[]): string[] {
  if (given.length > MAX_EGRESS_PATTERNS) {
    throw ProtocolError.invalidParams(field, `must not have more than ${MAX_EGRESS_PATTERNS} patterns`);
  }
  const patterns = given.map((text, i) => {
    const pattern = parseEgressPattern(text);
    if (pattern) return pattern.text;
    const shown = JSON.stringify(text.slice(0, 100));
    throw ProtocolError.invalidParams(
      `${field}[${i}]`,
      `${shown} is no destination: ${EGRESS_PATTERN_REMEDY}`,
    );
  });
  return [...new Set(patterns)];
}
