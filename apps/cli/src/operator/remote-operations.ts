import { Message } from '@baton/a2a';
import type {
  DeadLetter,
  DeadPush,
  HostBinding,
  KnownWorker,
  LoadFailure,
  QueueState,
  RunErrorRecord,
  TrustedIssuer,
} from '@baton/database';
import type { HostTarget, NewIssuer, OfTenant, ShownLetter } from '@baton/tasks';
import { ApiClient, type Target } from '../api-client.js';
import type { PlatformOperations } from './platform-operations.js';

interface HostJson {
  host: string;
  tenant_id: string;
  agent: string;
  public: boolean;
}

interface IssuerJson extends Pick<
  TrustedIssuer,
  'id' | 'issuer' | 'audience' | 'selector' | 'scopes' | 'grants'
> {
  tenant: string;
  tenant_id: string;
  jwks_url: string | null;
  subject_claim: string;
  agents: string[] | null;
  requests_per_second: number | null;
  created_at: string;
}

interface LetterJson {
  run_id: string;
  tenant: string;
  tenant_id: string;
  request_id: string;
  agent_id: string;
  owner: string | null;
  reason: string;
  attempts: number;
  died_at: string;
  redelivered_at: string | null;
  redelivered_as: string | null;
}

interface PushJson extends Pick<DeadPush, 'receiver' | 'status' | 'error' | 'failures' | 'waiting'> {
  tenant: string;
  tenant_id: string;
  request_id: string;
  config_id: string;
  agent_id: string;
  webhook: boolean;
  failing_since: string;
}

/** An error in the code of an agent, as the server writes it. */
export interface RunErrorJson extends Pick<RunErrorRecord, 'attempt' | 'at' | 'name' | 'message'> {
  run_id: string;
  stack: string | null;
  output: string[];
}

interface ShownLetterJson extends LetterJson {
  message: object | null;
  error: RunErrorJson | null;
}

type WorkerJson = Pick<KnownWorker, 'id' | 'host' | 'pid' | 'concurrency' | 'running' | 'version'> & {
  memory_bytes: number | null;
  alive: boolean;
  started_at: string;
  seen_at: string;
  load_failures: (Omit<LoadFailure, 'slug'> & { agent: string | null })[];
};

interface QueueJson {
  classes: (Pick<QueueState['classes'][number], 'class' | 'runs'> & {
    /** Not said by earlier releases: they counted all. */
    more?: boolean;
    oldest_at: string | null;
    oldest_seconds: number;
  })[];
  oldest_waiting: { tenant: string; request_id: string; accepted_at: string } | null;
  dead_letters: number;
  dead_pushes: number;
  slots: number;
}

/** The API of operators, over all tenants: `/v1/admin`. Every error is an OperatorError. */
export class RemoteOperations implements PlatformOperations {
  private readonly api: ApiClient;

  constructor(target: Target) {
    this.api = new ApiClient(target);
  }

  async listHosts(tenant?: string): Promise<OfTenant<HostBinding>[]> {
    const { hosts } = await this.api.call<{ hosts: OfTenant<HostJson>[] }>('GET', ofTenant('hosts', tenant));
    return hosts.map((host) => ({ ...hostOf(host), tenant: host.tenant }));
  }

  async bindHost(host: string, target: HostTarget): Promise<OfTenant<HostBinding>> {
    const bound = await this.api.call<OfTenant<HostJson>>('PUT', pathOf('hosts', host), target);
    return { ...hostOf(bound), tenant: bound.tenant };
  }

  async unbindHost(host: string): Promise<HostBinding> {
    return hostOf(await this.api.call<HostJson>('DELETE', pathOf('hosts', host)));
  }

  async listIssuers(tenant?: string): Promise<OfTenant<TrustedIssuer>[]> {
    const path = tenant === undefined ? 'admin/issuers' : `${pathOf('tenants', tenant)}/issuers`;
    return (await this.api.call<{ issuers: IssuerJson[] }>('GET', path)).issuers.map(issuerOf);
  }

  async addIssuer(tenant: string, issuer: NewIssuer): Promise<OfTenant<TrustedIssuer>> {
    return issuerOf(await this.api.call('POST', `${pathOf('tenants', tenant)}/issuers`, issuer));
  }

  async removeIssuer(tenant: string, id: string): Promise<OfTenant<TrustedIssuer>> {
    const path = `${pathOf('tenants', tenant)}/issuers/${encodeURIComponent(id)}`;
    return issuerOf(await this.api.call('DELETE', path));
  }

  async listLetters(tenant?: string): Promise<OfTenant<DeadLetter>[]> {
    const query = { ...(tenant !== undefined && { tenant }) };
    const letters = await this.api.list<LetterJson>('admin/dead-letters', 'dead_letters', query);
    return letters.map(letterOf);
  }

  async showLetter(runId: string): Promise<ShownLetter> {
    const path = pathOf('dead-letters', runId);
    const { message, error, ...letter } = await this.api.call<ShownLetterJson>('GET', path);
    return {
      ...letterOf(letter),
      message: message && Message.fromJSON(message),
      error: error && errorOf(error),
    };
  }

  async redeliver(runId: string, again: boolean): Promise<{ taskId: string }> {
    const path = `${pathOf('dead-letters', runId)}/redeliver${again ? '?again=true' : ''}`;
    const { request_id: taskId } = await this.api.call<{ request_id: string }>('POST', path);
    return { taskId };
  }

  async listPushes(tenant?: string): Promise<OfTenant<DeadPush>[]> {
    const query = { ...(tenant !== undefined && { tenant }) };
    return (await this.api.list<PushJson>('admin/dead-pushes', 'dead_pushes', query)).map(pushOf);
  }

  async redeliverPushes(taskId: string, configId?: string): Promise<string[]> {
    const query = configId === undefined ? '' : `?config=${encodeURIComponent(configId)}`;
    const path = `${pathOf('dead-pushes', taskId)}/redeliver${query}`;
    return (await this.api.call<{ configs: string[] }>('POST', path)).configs;
  }

  async listWorkers(): Promise<KnownWorker[]> {
    const { workers } = await this.api.call<{ workers: WorkerJson[] }>('GET', 'admin/workers');
    return workers.map(({ started_at: started, seen_at: seen, load_failures: failures, ...worker }) => {
      const { memory_bytes: memoryBytes, alive: isAlive, ...rest } = worker;
      return {
        ...rest,
        memoryBytes,
        isAlive,
        startedAt: new Date(started),
        seenAt: new Date(seen),
        loadFailures: failures.map(({ agent: slug, ...failure }) => ({ slug, ...failure })),
      };
    });
  }

  async readQueue(): Promise<QueueState> {
    const queue = await this.api.call<QueueJson>('GET', 'admin/queue');
    const { classes, oldest_waiting: oldest, slots } = queue;
    return {
      classes: classes.map(({ class: name, runs, more = false, oldest_at: at, oldest_seconds: seconds }) => ({
        class: name,
        runs,
        more,
        oldestAt: at === null ? null : new Date(at),
        oldestSeconds: seconds,
      })),
      oldestWaiting: oldest && {
        tenant: oldest.tenant,
        taskId: oldest.request_id,
        acceptedAt: new Date(oldest.accepted_at),
      },
      deadLetters: queue.dead_letters,
      deadPushes: queue.dead_pushes,
      slots,
    };
  }
}

const pathOf = (kind: string, name: string): string => `admin/${kind}/${encodeURIComponent(name)}`;

const ofTenant = (kind: string, slug: string | undefined): string =>
  `admin/${kind}${slug === undefined ? '' : `?tenant=${encodeURIComponent(slug)}`}`;

const hostOf = ({ host, tenant_id: tenantId, agent, public: open }: HostJson): HostBinding => ({
  host,
  tenantId,
  agent,
  public: open,
});

const issuerOf = ({
  tenant_id: tenantId,
  jwks_url: jwksUrl,
  ...json
}: IssuerJson): OfTenant<TrustedIssuer> => ({
  id: json.id,
  tenantId,
  tenant: json.tenant,
  issuer: json.issuer,
  audience: json.audience,
  selector: json.selector,
  jwksUrl,
  subjectClaim: json.subject_claim,
  scopes: json.scopes,
  grants: json.grants,
  agents: json.agents ?? [],
  requestsPerSecond: json.requests_per_second,
  createdAt: new Date(json.created_at),
});

const letterOf = (letter: LetterJson): OfTenant<DeadLetter> => ({
  runId: letter.run_id,
  tenant: letter.tenant,
  tenantId: letter.tenant_id,
  taskId: letter.request_id,
  agentId: letter.agent_id,
  owner: letter.owner,
  reason: letter.reason,
  attempts: letter.attempts,
  diedAt: new Date(letter.died_at),
  redeliveredAt: letter.redelivered_at === null ? null : new Date(letter.redelivered_at),
  redeliveredTaskId: letter.redelivered_as,
});

const pushOf = (push: PushJson): OfTenant<DeadPush> => ({
  tenant: push.tenant,
  tenantId: push.tenant_id,
  taskId: push.request_id,
  configId: push.config_id,
  agentId: push.agent_id,
  isWebhook: push.webhook,
  receiver: push.receiver,
  status: push.status,
  error: push.error,
  failures: push.failures,
  waiting: push.waiting,
  failingSince: new Date(push.failing_since),
});

export const errorOf = ({ run_id: runId, stack, ...error }: RunErrorJson): RunErrorRecord => ({
  ...error,
  runId,
  ...(stack !== null && { stack }),
});
