import { randomBytes, randomUUID } from 'node:crypto';
import { createDatabase, createRedisUrl, type TestDatabase } from '../../../test/support/index.js';
import { createMessaging, type MessagingOptions } from './create-messaging.js';
import type { Messaging, RunJob, TaskSignal } from './messaging.js';

/** One installation of Baton as far as messaging goes: any number of processes on one server. */
export class Installation {
  private readonly running: Messaging[] = [];
  readonly warnings: string[] = [];

  private constructor(
    readonly options: Omit<MessagingOptions, 'log'>,
    private readonly database: TestDatabase,
  ) {}

  static async on(driver: 'redis' | 'postgres', redisUrl?: string): Promise<Installation> {
    const database = await createDatabase();
    const namespace = `t${randomBytes(6).toString('hex')}`;
    const url = driver === 'redis' ? (redisUrl ?? (await createRedisUrl())) : undefined;
    return new Installation({ redisUrl: url, databaseUrl: database.url, namespace }, database);
  }

  /** Messaging as a process of its own would have it. */
  async process(): Promise<Messaging> {
    const messaging = this.create();
    await messaging.start(120_000);
    return messaging;
  }

  create(options: Partial<MessagingOptions> = {}): Messaging {
    const note = (message: string, fields?: unknown): void =>
      void this.warnings.push(`${message} ${JSON.stringify(fields)}`);
    const log = { info: () => undefined, warn: note, error: note };
    const messaging = createMessaging({ ...this.options, log, ...options });
    this.running.push(messaging);
    return messaging;
  }

  async close(): Promise<void> {
    await Promise.all(this.running.map((messaging) => messaging.close()));
    await this.database.drop();
  }
}

export function someRun(attempt = 0): RunJob {
  return { tenantId: randomUUID(), taskId: randomUUID(), runId: randomUUID(), attempt };
}

/** A signal with one event whose JSON is about `bytes` long. */
export function signalOf(sequence: number, bytes = 10): TaskSignal {
  const json = JSON.stringify('x'.repeat(bytes));
  return { lastSequence: sequence, events: [{ sequence, attempt: 1, json }] };
}
