import { isAllowedName, isUuid, ProtocolError } from '@baton/a2a';
import {
  type Actor,
  type CapKind,
  type CapPeriod,
  type CapSetter,
  EACH,
  MAX_CAPS,
  type OnLimit,
  type SpendingCap,
  SpendingCapStore,
  type SpendingCapUse,
} from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { Inject, Injectable } from '@nestjs/common';
import { AgentDirectory } from '../catalog/agent-directory.js';
import type { Viewer } from '../catalog/catalog.js';
import { Schedules } from '../schedules/schedules.js';
import { TenantSettings } from '../tenants/tenant-settings.js';

/** What a cap is made of. */
export interface CapSpec {
  kind: CapKind;
  /** As people name it: the slug of an agent, the name of a schedule. `EACH` or, for the tenant, empty. */
  subject: string;
  period: CapPeriod;
  /** Millionths of the currency. */
  micros: number;
  onLimit: OnLimit;
}

/** Longer than each key of a principal: the id of an issuer, and a claim of its user of 255 characters. */
const MAX_CALLER = 300;
/** `Retry-After` where something must be deleted first. */
const FULL_RETRY_SECONDS = 60;

/** What tenants may spend: caps of the tenant itself, and those of the operator, which the tenant cannot change. */
@Injectable()
export class SpendingCaps {
  constructor(
    private readonly store: SpendingCapStore,
    private readonly directory: AgentDirectory,
    private readonly schedules: Schedules,
    private readonly settings: TenantSettings,
    private readonly limits: LimitsService,
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'publishControl'>,
  ) {}

  /** The caps of a tenant, with what is used. A caller with a list of agents sees those of these agents. */
  async list({ tenantId, agents }: Viewer): Promise<SpendingCapUse[]> {
    const all = await this.store.list(tenantId);
    return agents ? all.filter(({ kind, name }) => kind === 'agent' && isAllowedName(agents, name)) : all;
  }

  /**
   * Set a cap. It replaces one with the same subject and period.
   * @throws ProtocolError `invalid-params` that names the field, `limit-exceeded`
   */
  async set(viewer: Viewer, spec: CapSpec, by: Actor): Promise<SpendingCapUse> {
    if ((spec.period === 'life') !== (spec.kind === 'task')) {
      throw ProtocolError.invalidParams(
        'period',
        'must be "life" for a task, and day, week or month for all others',
      );
    }
    const { tenantId } = viewer;
    if (viewer.agents && (spec.kind !== 'agent' || !isAllowedName(viewer.agents, spec.subject))) {
      throw ProtocolError.invalidParams('of', 'must be an agent of your token: not all agents exist for it');
    }
    const named = await this.subjectOf(viewer, spec);
    return this.storeCap(tenantId, { ...spec, ...named }, 'tenant', by);
  }

  /** Throws `not-found`, also for a cap of the operator. */
  async remove(viewer: Viewer, id: string, by: Actor): Promise<void> {
    const found = (await this.list(viewer)).find((cap) => cap.id === id);
    if (found?.setBy === 'operator') {
      throw new ProtocolError('forbidden', 'the operator has set this cap: only the operator changes it');
    }
    if (found && (await this.store.remove(viewer.tenantId, id, 'tenant', by)))
      return this.announce(viewer.tenantId);
    throw new ProtocolError('not-found', `There is no spending cap "${id.slice(0, 100)}"`);
  }

  /** The caps that the operator has set for a tenant. Throws `not-found` for an unknown slug, as all methods for operators. */
  async ofOperator(slug: string): Promise<SpendingCapUse[]> {
    const { id } = await this.settings.find(slug);
    return (await this.store.list(id)).filter(({ setBy }) => setBy === 'operator');
  }

  /** Set what a tenant may spend in a period. */
  async setByOperator(slug: string, period: CapPeriod, micros: number, by: Actor): Promise<SpendingCapUse> {
    const { id } = await this.settings.find(slug);
    return this.storeCap(
      id,
      { kind: 'tenant', subject: '', name: '', period, micros, onLimit: 'fail' } as const,
      'operator',
      by,
    );
  }

  async removeByOperator(slug: string, period: CapPeriod, by: Actor): Promise<void> {
    const { id: tenantId } = await this.settings.find(slug);
    const cap = (await this.ofOperator(slug)).find((each) => each.period === period);
    if (cap && (await this.store.remove(tenantId, cap.id, 'operator', by))) return this.announce(tenantId);
    throw new ProtocolError('not-found', `The tenant "${slug}" has no cap of the operator for a ${period}`);
  }

  private async storeCap(
    tenantId: string,
    cap: CapSpec & { name: string },
    setBy: CapSetter,
    by: Actor,
  ): Promise<SpendingCapUse> {
    const stored = await this.store.set({ tenantId, ...cap, setBy, by });
    if (!stored) {
      throw ProtocolError.limitExceeded(
        'spendingCaps',
        MAX_CAPS,
        FULL_RETRY_SECONDS,
        'delete caps that you no longer need',
      );
    }
    await this.announce(tenantId);
    const { id }: SpendingCap = stored;
    return (await this.store.list(tenantId)).find((each) => each.id === id) ?? throwRemoved(id);
  }

  /** The subject as calls name it, and as people do. */
  private async subjectOf(
    viewer: Viewer,
    { kind, subject }: CapSpec,
  ): Promise<{ subject: string; name: string }> {
    const { tenantId } = viewer;
    if (kind === 'tenant') {
      if (subject === '') return { subject, name: '' };
      throw ProtocolError.invalidParams('subject', 'must be left out: the cap is of the whole tenant');
    }
    if (subject === EACH) return { subject, name: EACH };
    if (kind === 'agent') {
      const agent = await this.directory.find(tenantId, subject);
      if (agent) return { subject: agent.id, name: agent.slug };
      throw ProtocolError.invalidParams('subject', `there is no agent "${subject}"`);
    }
    if (kind === 'schedule') {
      const schedule = await this.schedules.find(viewer, subject).catch(() => undefined);
      if (schedule) return { subject: schedule.id, name: schedule.name };
      throw ProtocolError.invalidParams('subject', `there is no schedule "${subject}"`);
    }
    if (kind === 'caller' ? subject.length > 0 && subject.length <= MAX_CALLER : isUuid(subject)) {
      return { subject, name: subject };
    }
    const what =
      kind === 'caller' ? 'the key of a caller, as baton usage --by owner shows it' : `the id of a ${kind}`;
    throw ProtocolError.invalidParams('subject', `must be ${what}, or "*" for each`);
  }

  /** Every process reads again whether the tenant has caps. */
  private async announce(tenantId: string): Promise<void> {
    this.limits.forget(tenantId);
    // A process that misses the control message reads it again within TOKEN_CACHE_MS.
    await this.messaging.publishControl({ type: 'limits-changed', tenantId }).catch(() => undefined);
  }
}

function throwRemoved(id: string): never {
  throw new ProtocolError('not-found', `The spending cap ${id} was removed meanwhile`);
}
