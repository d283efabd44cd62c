import type {
  DeadLetter,
  DeadPush,
  HostBinding,
  KnownWorker,
  QueueState,
  TrustedIssuer,
} from '@baton/database';
import type { HostTarget, NewIssuer, OfTenant, ShownLetter } from '@baton/tasks';

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
