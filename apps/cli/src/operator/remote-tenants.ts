import type { LimitName, LimitOverrides } from '@baton/config';
import type { Tenant, TenantExport, TenantImport, TenantUsage } from '@baton/database';
import type { DeletedTenant, LimitsInForce, Suspended, TenantChange } from '@baton/tasks';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../operator-error.js';
import { ApiClient, type Target } from '../api-client.js';
import type { TenantOperations } from './tenant-operations.js';

interface TenantJson {
  id: string;
  slug: string;
  default_agent: string;
  index_model: string | null;
  index_model_url: string | null;
  egress_allow: string[];
  egress_deny: string[];
  suspended_at: string | null;
  suspended_reason: string | null;
  deleting_at: string | null;
  created_at: string;
  stored_bytes?: number | null;
}

interface UsageJson {
  stored_bytes: number | null;
  queued_runs: number;
  running_runs: number;
  suspended_runs: number;
  dead_letters: number;
  days: { day: string; input_tokens: number; output_tokens: number }[];
}

const NDJSON = 'application/x-ndjson';
/** Of the header and of the last line of an export. */
const MAX_LINE = 1024 * 1024;

/** The API of operators: `/v1/admin/tenants`. Every error is an OperatorError. */
export class RemoteTenants implements TenantOperations {
  private readonly api: ApiClient;

  constructor(target: Target) {
    this.api = new ApiClient(target);
  }

  async create(slug: string): Promise<Tenant> {
    return tenantOf(await this.api.call('POST', 'admin/tenants', { slug }));
  }

  async list(): Promise<Tenant[]> {
    return (await this.api.list<TenantJson>('admin/tenants', 'tenants')).map(tenantOf);
  }

  async find(slug: string): Promise<Tenant> {
    return tenantOf(await this.api.call('GET', pathOf(slug)));
  }

  async change(slug: string, change: TenantChange): Promise<Tenant> {
    const body = {
      default_agent: change.defaultAgent,
      index_model: change.indexModel,
      index_model_url: change.indexModelUrl,
      egress_allow: change.egressAllow,
      egress_deny: change.egressDeny,
    };
    return tenantOf(await this.api.call('PATCH', pathOf(slug), body));
  }

  async limits(slug: string): Promise<LimitsInForce> {
    const { limits } = await this.api.call<{ limits: LimitsInForce }>('GET', `${pathOf(slug)}/limits`);
    return limits;
  }

  async changeLimits(
    slug: string,
    values: LimitOverrides,
    defaults: readonly LimitName[],
  ): Promise<LimitsInForce> {
    const body = { ...values, ...Object.fromEntries(defaults.map((name) => [name, 'default'])) };
    const path = `${pathOf(slug)}/limits`;
    return (await this.api.call<{ limits: LimitsInForce }>('PATCH', path, body)).limits;
  }

  async usage(slug: string): Promise<TenantUsage> {
    const usage = await this.api.call<UsageJson>('GET', `${pathOf(slug)}/usage`);
    return {
      storedBytes: usage.stored_bytes,
      queuedRuns: usage.queued_runs,
      runningRuns: usage.running_runs,
      suspendedRuns: usage.suspended_runs,
      deadLetters: usage.dead_letters,
      days: usage.days.map(({ day, input_tokens: inputTokens, output_tokens: outputTokens }) => ({
        day,
        inputTokens,
        outputTokens,
      })),
    };
  }

  async suspend(slug: string, options: { reason?: string; stop: boolean }): Promise<Suspended> {
    const answer = await this.api.call<{ tenant: TenantJson; canceled_tasks: number }>(
      'POST',
      `${pathOf(slug)}/suspend`,
      options,
    );
    return { tenant: tenantOf(answer.tenant), canceledTasks: answer.canceled_tasks };
  }

  async resume(slug: string): Promise<Tenant> {
    return tenantOf(await this.api.call('POST', `${pathOf(slug)}/resume`));
  }

  async delete(slug: string, report: (table: string, rows: number) => void): Promise<DeletedTenant> {
    const { canceled_tasks: canceledTasks, ...deleted } = await this.api.call<
      Omit<DeletedTenant, 'canceledTasks'> & { canceled_tasks: number }
    >('DELETE', `${pathOf(slug)}?confirm=${encodeURIComponent(slug)}`);
    for (const [table, rows] of Object.entries(deleted.rows)) report(table, rows);
    return { ...deleted, canceledTasks };
  }

  async export(
    slug: string,
    out: Writable,
    { skipRunning }: { skipRunning: boolean },
  ): Promise<TenantExport> {
    const path = `${pathOf(slug)}/export?skip_running=${String(skipRunning)}`;
    const { body } = await this.api.open('GET', path);
    let end = '';
    if (body) {
      await pipeline(
        Readable.fromWeb(body),
        async function* (chunks: AsyncIterable<Uint8Array>) {
          for await (const chunk of chunks) {
            end = (end + Buffer.from(chunk).toString('latin1')).slice(-MAX_LINE);
            yield chunk;
          }
        },
        out,
      );
    }
    const last = end.trimEnd().split('\n').at(-1) ?? '';
    if (!last.startsWith('{"kind":"end"')) throw new OperatorError('The export broke off: try again.');
    const { records } = JSON.parse(last) as Pick<TenantExport, 'records'>;
    return { slug, records, secrets: [], runningTasks: 0 };
  }

  async import(slug: string, input: AsyncIterable<Uint8Array>): Promise<TenantImport> {
    const response = await this.api.send('POST', `${pathOf(slug)}/import`, Readable.from(input), NDJSON);
    const { paused_schedules: pausedSchedules, ...imported } = (await response.json()) as Omit<
      TenantImport,
      'pausedSchedules'
    > & { paused_schedules: number };
    return { ...imported, pausedSchedules };
  }
}

const pathOf = (slug: string): string => `admin/tenants/${encodeURIComponent(slug)}`;

const dateOf = (text: string | null): Date | null => (text === null ? null : new Date(text));

const tenantOf = (json: TenantJson): Tenant => ({
  id: json.id,
  slug: json.slug,
  defaultAgent: json.default_agent,
  limits: {},
  indexModel: json.index_model,
  indexModelUrl: json.index_model_url,
  egressAllow: json.egress_allow,
  egressDeny: json.egress_deny,
  suspendedAt: dateOf(json.suspended_at),
  suspendedReason: json.suspended_reason,
  deletingAt: dateOf(json.deleting_at),
  createdAt: new Date(json.created_at),
  predatesRetention: false,
  ...(json.stored_bytes !== undefined && { storedBytes: json.stored_bytes }),
});
