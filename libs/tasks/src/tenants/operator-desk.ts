import { isUuid, ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import {
  type Actor,
  type ApiToken,
  BackupError,
  type DeadLetter,
  DeadLetterStore,
  exportTenant,
  type HostBinding,
  hostName,
  HostStore,
  importTenant,
  type KnownWorker,
  type TenantImport,
  TokenStore,
  WorkerStore,
} from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';
import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { DeadLetters, refusalOf } from '../dead-letters/dead-letters.js';
import { TenantSettings } from './tenant-settings.js';

/** Dead letters of one answer. */
const MAX_LETTERS = 1_000;
const HOST = /^[a-z\d]([a-z\d.-]{0,251}[a-z\d])?$/;

/** A thing of a tenant, with the tenant's slug. */
type OfTenant<T> = T & { tenant: string };

/** What operators do over all tenants: hosts, workers, dead letters, tokens, exports and imports. */
@Injectable()
export class OperatorDesk {
  constructor(
    private readonly settings: TenantSettings,
    private readonly hosts: HostStore,
    private readonly workers: WorkerStore,
    private readonly letters: DeadLetterStore,
    private readonly deadLetters: DeadLetters,
    private readonly tokens: TokenStore,
    private readonly agents: AgentDirectory,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
  ) {}

  async listHosts(): Promise<OfTenant<HostBinding>[]> {
    return this.named(await this.hosts.list());
  }

  /** @throws ProtocolError `invalid-params`, `not-found`, `conflict` if the host is another tenant's */
  async bindHost(
    host: string,
    target: { tenant: string; agent: string; public: boolean },
    by: Actor,
  ): Promise<OfTenant<HostBinding>> {
    if (!HOST.test(hostName(host))) {
      throw ProtocolError.invalidParams('host', 'give the name alone, such as agents.example.com');
    }
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

  /** Throws ProtocolError `not-found`. */
  async unbindHost(host: string, by: Actor): Promise<void> {
    const binding = await this.hosts.unbind(host, by);
    if (!binding) throw new ProtocolError('not-found', 'The host is not bound');
    await this.inform(binding.tenantId);
  }

  /** Those that have given a sign of life in the last hour. */
  async listWorkers(): Promise<KnownWorker[]> {
    return this.workers.list();
  }

  /** The latest first, at most 1,000, of one tenant or of all. */
  async listLetters(slug?: string): Promise<OfTenant<DeadLetter>[]> {
    if (slug === undefined) return this.named(await this.letters.listAll(MAX_LETTERS));
    const { id } = await this.settings.find(slug);
    return this.named(await this.letters.list(id, { limit: MAX_LETTERS }));
  }

  /** Send the message of a dead run again. @throws ProtocolError, as the redelivery by a tenant */
  async redeliver(runId: string, again: boolean, by: Actor): Promise<{ taskId: string; agentId: string }> {
    const letter = isUuid(runId) ? await this.letters.findAnywhere(runId) : undefined;
    if (!letter) throw new ProtocolError('not-found', 'There is no dead letter of this run');
    const redelivered = await this.deadLetters.redeliver(letter.tenantId, runId, again, undefined, by);
    if (!redelivered.ok) throw refusalOf(redelivered);
    return { taskId: redelivered.taskId, agentId: redelivered.letter.agentId };
  }

  /** Newest first. */
  async listTokens(slug: string): Promise<ApiToken[]> {
    return this.tokens.list((await this.settings.find(slug)).id);
  }

  /** The lines of an export. What fails after the first of them destroys the stream. @throws ProtocolError `conflict` */
  async export(slug: string, options: { skipRunning: boolean }, by: Actor): Promise<Readable> {
    const { id } = await this.settings.beginExport(slug, by);
    const out = new PassThrough();
    const written = exportTenant(this.environment.databaseUrl, id, out, options);
    written.catch((error: unknown) => out.destroy(error as Error));
    out.on('error', () => undefined);
    await Promise.race([once(out, 'readable'), written]).catch(refuse);
    return out;
  }

  /** @throws ProtocolError `invalid-params`, `conflict` */
  async import(slug: string, input: AsyncIterable<Uint8Array>, by: Actor): Promise<TenantImport> {
    this.settings.assertSlug(slug);
    return importTenant(this.environment.databaseUrl, slug, input, by).catch(refuse);
  }

  private async named<T extends { tenantId: string }>(things: readonly T[]): Promise<OfTenant<T>[]> {
    const slugs = new Map((await this.settings.list()).map(({ id, slug }) => [id, slug]));
    return things.map((thing) => ({ ...thing, tenant: slugs.get(thing.tenantId) ?? '' }));
  }

  /** Processes that do not hear of it notice within a second. */
  private async inform(tenantId: string): Promise<void> {
    await this.messaging.publishControl({ type: 'catalog-changed', tenantId }).catch(() => undefined);
  }
}

function refuse(error: unknown): never {
  throw error instanceof BackupError ? new ProtocolError('conflict', error.message) : error;
}
