import { ProtocolError } from '@baton/a2a';
import type {
  DeadLetter,
  DeadPush,
  HostBinding,
  KnownWorker,
  QueueState,
  TrustedIssuer,
} from '@baton/database';
import type { HostTarget, NewIssuer, OfTenant, ShownLetter } from '@baton/tasks';
import type { Cli } from '../cli.js';
import { RefusedError } from '../server.js';
import { findAdminTarget, type OperatorOptions } from './admin-target.js';

/** What operators do with hosts, issuers, dead letters, workers and the queue: over the API of a management port, or on the database. */
export interface PlatformOperations {
  /** @param tenant slug; unset = of all */
  listHosts(tenant?: string): Promise<OfTenant<HostBinding>[]>;
  bindHost(host: string, target: HostTarget): Promise<OfTenant<HostBinding>>;
  /** @returns the binding there was */
  unbindHost(host: string): Promise<HostBinding>;
  /** @param tenant slug; unset = of all */
  listIssuers(tenant?: string): Promise<OfTenant<TrustedIssuer>[]>;
  addIssuer(tenant: string, issuer: NewIssuer): Promise<OfTenant<TrustedIssuer>>;
  /** @returns the entry there was */
  removeIssuer(tenant: string, id: string): Promise<OfTenant<TrustedIssuer>>;
  /** @param tenant slug; unset = of all */
  listLetters(tenant?: string): Promise<OfTenant<DeadLetter>[]>;
  showLetter(runId: string): Promise<ShownLetter>;
  /** @returns the new task */
  redeliver(runId: string, again: boolean): Promise<{ taskId: string }>;
  /** @param tenant slug; unset = of all */
  listPushes(tenant?: string): Promise<OfTenant<DeadPush>[]>;
  /** @returns the push configs that are delivered again */
  redeliverPushes(taskId: string, configId?: string): Promise<string[]>;
  listWorkers(): Promise<KnownWorker[]>;
  readQueue(): Promise<QueueState>;
}

/** Do `work` on the platform that the options name. */
export async function withOperations<T>(
  cli: Cli,
  options: OperatorOptions,
  work: (operations: PlatformOperations) => Promise<T>,
): Promise<T> {
  const target = findAdminTarget(cli, options);
  if (target) {
    const { RemoteOperations } = await import('./remote-operations.js');
    return work(new RemoteOperations(target));
  }
  // Loaded only here: the other commands start faster without the use cases.
  const { withDatabaseOperations } = await import('./database-operations.js');
  return withDatabaseOperations(cli, work);
}

const STATUS: Partial<Record<string, number>> = { 'not-found': 404, 'task-not-found': 404, conflict: 409 };

/**
 * Why the use case refuses, wherever it runs, and the status of HTTP that says so; 400 for what is not allowed. Undefined
 * for every other error.
 */
export function refusalOf(error: unknown): { status: number; reason: string } | undefined {
  if (error instanceof RefusedError) return error.status < 500 ? error : undefined;
  if (!(error instanceof ProtocolError)) return undefined;
  return { status: STATUS[error.kind] ?? 400, reason: error.message };
}
