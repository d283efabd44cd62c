import { type EventPayload, type Message, Role, serializePayload, TaskState, textPart } from '@baton/a2a';
import { type Environment, loadEnvironment } from '@baton/config';
import {
  CatalogClient,
  type ClaimedRun,
  type Database,
  type NewEvent,
  PushDeliveryStore,
  PushReceiverStore,
  RunStore,
  TaskStore,
  WebhookStore,
} from '@baton/database';
import { type LimitsService, PushSecrets } from '@baton/identity';
import type { Messaging, PushJob } from '@baton/messaging';
import { type EgressLists, NO_EGRESS_LISTS, Outbound } from '@baton/outbound';
import { Logger, Metrics } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { SweepLeader } from '../core/sweep-leader.js';
import { newTask } from '../turns/turn-acceptance.js';
import { PushSender } from './push-sender.js';
import { PushWorker } from './push-worker.js';
import { DeliverySigner } from './delivery-signer.js';

/** A request that a receiver got. */
export interface Received {
  sequence: number;
  headers: IncomingHttpHeaders;
  json: Record<string, unknown>;
}

/** Answers a request. Unset = 200 at once. */
type Answer = (response: ServerResponse, request: Received) => void;

const OK: Answer = (response) => void response.end();

/** A receiver of push notifications on this machine. */
export class Receiver {
  readonly received: Received[] = [];
  private readonly waiting = new Set<() => void>();
  answer: Answer = OK;

  private constructor(private readonly server: ReturnType<typeof createServer>) {
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const json = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
        const { headers } = request;
        const received = { sequence: Number(headers['baton-sequence']), headers, json };
        this.received.push(received);
        for (const check of this.waiting) check();
        this.answer(response, received);
      });
    });
  }

  static async start(): Promise<Receiver> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Receiver(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  get sequences(): number[] {
    return this.received.map(({ sequence }) => sequence);
  }

  /** Resolves when it has got so many requests. */
  reach(count: number): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.received.length < count) return;
        this.waiting.delete(check);
        resolve();
      };
      this.waiting.add(check);
      check();
    });
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

/** A worker that only delivers push notifications, with a queue that is in this test's hand. */
export class PushWorkerFixture {
  readonly metrics = new Metrics();
  readonly environment: Environment;
  readonly outbound: Outbound;
  readonly worker: PushWorker;
  readonly webhooks: WebhookStore;
  readonly secrets: PushSecrets;
  private readonly catalog: CatalogClient;
  /** Of every tenant. */
  egress: EgressLists = NO_EGRESS_LISTS;
  /** What the queue calls with a job. */
  readonly enqueued: PushJob[] = [];
  private readonly leader: SweepLeader;
  private looking = new AbortController();
  private take: ((job: PushJob) => Promise<void>) | undefined;

  constructor(database: Database, url: string, id: string, settings: Record<string, string> = {}) {
    const environment = loadEnvironment({
      DATABASE_URL: url,
      OUTBOUND_ALLOW: '127.0.0.1',
      LOG_LEVEL: 'silent',
      PUSH_FIRST_RETRY_MS: '100',
      PUSH_MAX_RETRY_MS: '300',
      ...settings,
    });
    this.environment = environment;
    this.outbound = new Outbound(environment, this.metrics);
    const messaging = {
      consumePushes: (_: number, take: (job: PushJob) => Promise<void>) => {
        this.take = take;
        const nothing = (): void => undefined;
        return { pause: nothing, resume: nothing, close: () => Promise.resolve() };
      },
      enqueuePushes: async (jobs: readonly PushJob[]) => void this.enqueued.push(...jobs),
    } as unknown as Messaging;
    const store = new PushDeliveryStore(database);
    const limits = { egress: async () => this.egress } as unknown as LimitsService;
    this.catalog = new CatalogClient(url);
    this.webhooks = new WebhookStore(this.catalog, database);
    this.secrets = new PushSecrets(environment);
    const sender = new PushSender(
      store,
      new PushReceiverStore(database),
      new TaskStore(database),
      this.secrets,
      this.webhooks,
      limits,
      this.outbound,
      new DeliverySigner(environment),
      environment,
      this.metrics,
      Logger.silent(),
    );
    this.leader = new SweepLeader(new RunStore(database));
    this.worker = new PushWorker(
      store,
      sender,
      messaging,
      { id },
      environment,
      this.leader,
      this.metrics,
      Logger.silent(),
    );
  }

  /** Also looks for what is due from now on, as the worker that sweeps does. */
  start(): this {
    this.worker.onApplicationBootstrap();
    void this.lookAgainAndAgain();
    return this;
  }

  /** As a job of the queue does. */
  wake(tenantId: string, taskId: string): Promise<void> {
    return this.take?.({ tenantId, taskId }) ?? Promise.resolve();
  }

  private async lookAgainAndAgain(): Promise<void> {
    const { signal } = this.looking;
    while (!signal.aborted) {
      await this.leader.sweep(60_000).catch(() => undefined);
      await delay(20, undefined, { signal }).catch(() => undefined);
    }
  }

  async stop(): Promise<void> {
    this.looking.abort();
    await this.worker.onModuleDestroy();
    await this.worker.beforeApplicationShutdown();
    await this.outbound.onApplicationShutdown();
    await this.catalog.close();
  }
}

export interface ConfigRow {
  state: string;
  mode: string;
  delivered: number;
  head: number;
  failures: number;
  status: number | null;
  error: string | null;
  isDue: boolean;
  isLeased: boolean;
}

/** A config of a task that is told of everything after `after`. */
export async function addConfig(
  database: Database,
  { tenantId, taskId }: Pick<ClaimedRun, 'tenantId' | 'taskId'>,
  config: { id?: string; url: string; protocol?: string; mode?: string; after?: number; states?: number[] },
): Promise<void> {
  const { id = 'a', url, protocol = '1.0', mode = 'each', after = 0, states } = config;
  await database.tenantQuery(
    tenantId,
    {
      text: `WITH task AS (UPDATE tasks SET push_configs = push_configs + 1 WHERE tenant_id = $1 AND id = $2
        RETURNING last_sequence)
      INSERT INTO push_configs (tenant_id, task_id, id, url, host, protocol, mode, states, delivered_sequence, head_sequence, due_at)
      SELECT $1, $2, $3, $4, $9, $5, $6, $7, $8::int, last_sequence, CASE WHEN last_sequence > $8 THEN now() END FROM task`,
    },
    [tenantId, taskId, id, url, protocol, mode, states, after, new URL(url).host],
  );
}

/** What is kept of a config. */
export async function configOf(
  database: Database,
  { tenantId, taskId }: Pick<ClaimedRun, 'tenantId' | 'taskId'>,
  id = 'a',
): Promise<ConfigRow | undefined> {
  const [row] = await database.tenantQuery<ConfigRow>(
    tenantId,
    {
      text: `SELECT state, mode, delivered_sequence AS delivered, head_sequence AS head, failures, last_status AS status,
        last_error AS error, due_at IS NOT NULL AS "isDue", lease_until IS NOT NULL AS "isLeased"
      FROM push_configs WHERE tenant_id = $1 AND task_id = $2 AND id = $3`,
    },
    [tenantId, taskId, id],
  );
  return row;
}

const messageOf = (role: Role, text: string): Message => ({
  messageId: '',
  contextId: '',
  taskId: '',
  role,
  parts: [textPart(text)],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

interface StartOptions {
  tenantId?: string;
  traceparent?: string;
  /** What the caller says. */
  text?: string;
}

/** A task whose run this test is the worker of. Its log has `submitted` and `working`. */
export class RunningTask {
  private constructor(
    private readonly runs: RunStore,
    private readonly run: ClaimedRun,
    private head: number,
  ) {}

  static async start(database: Database, options: StartOptions = {}) {
    const { tenantId = randomUUID(), traceparent, text = 'hello' } = options;
    const [tasks, runs, runId] = [new TaskStore(database), new RunStore(database), randomUUID()];
    const task = newTask(messageOf(Role.ROLE_USER, text), {});
    await tasks.create({ tenantId, agentId: 'echo', runId, extensions: [], task, traceparent });
    const run = await runs.claim(tenantId, runId, 'worker', 600_000);
    if (!run) throw new Error('not claimed');
    return new RunningTask(runs, run, 2);
  }

  get tenantId(): string {
    return this.run.tenantId;
  }

  get taskId(): string {
    return this.run.taskId;
  }

  /** Says these texts, each as an event, all at once. */
  async say(...texts: string[]): Promise<void> {
    const { taskId } = this;
    const artifactOf = (text: string) => ({
      artifactId: 'reply',
      name: '',
      description: '',
      parts: [textPart(text)],
      metadata: undefined,
      extensions: [],
    });
    await this.append(
      texts.map((text) => ({
        $case: 'artifactUpdate',
        value: {
          taskId,
          contextId: '',
          artifact: artifactOf(text),
          append: true,
          lastChunk: false,
          metadata: undefined,
        },
      })),
    );
  }

  async end(state = TaskState.TASK_STATE_COMPLETED): Promise<void> {
    await this.append([this.statusOf(state)], state);
  }

  /** @param text what the agent says with the status */
  async work(text?: string): Promise<void> {
    const message = text === undefined ? undefined : messageOf(Role.ROLE_AGENT, text);
    await this.append([this.statusOf(TaskState.TASK_STATE_WORKING, message)]);
  }

  private statusOf(state: TaskState, message?: Message): EventPayload {
    const status = { state, message, timestamp: new Date().toISOString() };
    return {
      $case: 'statusUpdate',
      value: { taskId: this.taskId, contextId: '', status, metadata: undefined },
    };
  }

  private async append(payloads: EventPayload[], end?: TaskState): Promise<void> {
    const events: NewEvent[] = payloads.map((payload) => ({ payload, json: serializePayload(payload) }));
    const batch = {
      afterSequence: this.head,
      events,
      ...(end !== undefined && { end: { state: end, outcome: null } }),
    };
    if (!(await this.runs.append(this.run, batch)).ok) throw new Error('not appended');
    this.head += events.length;
  }
}
