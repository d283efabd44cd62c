import { Environment } from '@baton/config';
import {
  type ClaimedPush,
  isTransient,
  PUSH_MODES,
  PushDeliveryStore,
  type PushMode,
  PushReceiverStore,
  retryTransient,
  TaskStore,
  WebhookStore,
} from '@baton/database';
import { LimitsService, PushSecrets, SecretError } from '@baton/identity';
import { failureReason, Outbound } from '@baton/outbound';
import { clock, counter, histogram, Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { pushExchange } from './push-exchange.js';
import { deliveryId, DeliverySigner, type ReceiverSecrets } from './delivery-signer.js';
import { needsTask, type PushRequest, pushRequests } from './push-request.js';
import { retryAfterMs, retryPause } from './retry-plan.js';

const DELIVERIES = counter(
  'baton_push_deliveries_total',
  'Push notifications that were tried, by outcome: delivered, failed, ended (HTTP 410) or dead (given up)',
  ['outcome'],
  [{ outcome: 'delivered' }, { outcome: 'failed' }, { outcome: 'ended' }, { outcome: 'dead' }],
);
const REQUEST = histogram(
  'baton_push_request_seconds',
  'Duration of requests to receivers of push notifications',
);
const WAIT = histogram(
  'baton_push_wait_seconds',
  'Time for which a push config was due before a worker took it',
);

/** How much longer than a request a lease is: time for the statements before and after it. */
const LEASE_MARGIN_MS = 5_000;
/** Events that one read of the log returns, and about how large they may be together. */
const PAGE = { limit: 100, bytes: 1024 * 1024 };
/** After this many requests a config lets others go first. */
const MAX_REQUESTS = 100;
/** The error is in a row that each try updates, so it stays short. */
const MAX_ERROR_CHARS = 500;
/** HTTP status 410 Gone: the receiver refuses all further deliveries. */
const GONE = 410;
/** Bytes of an answer that are looked at for its owner. */
const MAX_SHOWN_BYTES = 4_096;
/** Maximum number of receivers that a worker keeps as ones that have accepted a delivery. */
const MAX_CONFIRMED = 10_000;

/** The answer of a receiver. */
interface ReceiverAnswer {
  status: number;
  mode: PushMode | undefined;
  /** In ms; 0 = it sent none. */
  retryAfter: number;
  /** JSON of the PushExchange. */
  exchange: string;
}

/** A receiver that has not taken a request. */
class Unanswered {
  constructor(
    /** For the owner of the config. */
    readonly reason: string,
    readonly status: number | null = null,
    readonly retryAfter = 0,
    /** The pause until the next try, in ms, where all configs of the receiver share it. */
    readonly pauseMs?: number,
    /** JSON of the PushExchange. Unset: nothing was sent. */
    readonly exchange?: string,
  ) {}
}

/** A receiver that has never taken a delivery of the tenant, and may not be tried yet. */
class Postponed {
  constructor(readonly waitMs: number) {}
}

/** A lease, by the clock of this process. */
interface Lease {
  /** In ms, as `performance.now()`. */
  endsAt: number;
  /** Aborts when no other request may begin. */
  stopping: AbortSignal;
  /** Aborts requests under way. */
  signal: AbortSignal;
}

/** The reason with which a worker that shuts down aborts. */
export interface StopSignals {
  /** Begin no other request. */
  stopping: AbortSignal;
  /** Abort the one under way. */
  abort: AbortSignal;
}

/**
 * Delivers push notifications: reads the log after the cursor of a config, and sends one request after the other. A request
 * that is not answered with 2xx is repeated, so that events stay in order. The cursor moves after the answer: a worker that
 * dies between the two leaves one request that is sent twice (docs/inside/adr/0023-push-from-the-log.md).
 */
@Injectable()
export class PushSender {
  /** Receivers that have taken a delivery, by tenant and host. */
  private readonly confirmed = new LRUCache<string, true>({ max: MAX_CONFIRMED });

  constructor(
    private readonly deliveries: PushDeliveryStore,
    private readonly receivers: PushReceiverStore,
    private readonly tasks: TaskStore,
    private readonly secrets: PushSecrets,
    private readonly webhooks: WebhookStore,
    private readonly limits: LimitsService,
    private readonly outbound: Outbound,
    private readonly signer: DeliverySigner,
    private readonly environment: Environment,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
  ) {}

  /** How long a config belongs to a worker without a word of it. */
  get leaseMs(): number {
    return this.environment.pushTimeoutMs + LEASE_MARGIN_MS;
  }

  /**
   * Send a claimed config its next events. Never rejects. After any failure its row shows the remaining work.
   * @param claimedAt when the claim was sent, in ms as `performance.now()`
   */
  async deliver(
    config: ClaimedPush,
    claimedAt: number,
    { stopping, abort: signal }: StopSignals,
  ): Promise<void> {
    const { tenantId, taskId, configId } = config;
    const log = this.logger.child({ tenantId, taskId, configId });
    this.metrics.get(WAIT).observe({}, config.waitedSeconds);
    const lease = { endsAt: claimedAt + this.leaseMs, stopping, signal };
    try {
      const hasEnded = await this.tellAll(config, lease, log).catch((error: unknown) => {
        // A stop of this worker is no failed delivery, and neither is a fault of Postgres.
        if (signal.aborted) return false;
        if (isTransient(error)) throw error;
        log.error('push notification could not be prepared', { err: error });
        return this.fail(config, new Unanswered('the notification could not be prepared'), log);
      });
      if (!hasEnded) await this.deliveries.release(config);
    } catch (error) {
      log.warn('push config could not be returned; another worker takes it when its lease ends', {
        err: error,
      });
    }
  }

  /** @returns whether the lease has ended */
  private async tellAll(config: ClaimedPush, lease: Lease, log: Logger): Promise<boolean> {
    let now = config;
    for (let sent = 0; this.mayGoOn(lease, sent);) {
      const requests = await this.nextRequests(now, lease.signal);
      for (const request of requests) {
        // After this, another worker may send the same at the same time.
        if (!this.mayGoOn(lease, sent)) return false;
        const askedAt = performance.now();
        const answer = request.body === undefined ? undefined : await this.send(now, request, lease.signal);
        const ms = Math.round(performance.now() - askedAt);
        if (answer instanceof Unanswered) return this.fail(now, answer, log, ms);
        if (answer instanceof Postponed) return this.postpone(now, answer, log);
        sent += 1;
        const head = await this.advance(now, request.through, lease, answer && { ...answer, ms });
        // The config was deleted, or another worker has it.
        if (head === undefined) return false;
        if (head <= request.through) return true;
        const { mode } = now;
        now = { ...now, delivered: request.through, failures: 0, mode: answer?.mode ?? mode };
        if (now.mode !== mode) break;
      }
    }
    return false;
  }

  /** Whether there is time for one more request. */
  private mayGoOn({ stopping, endsAt }: Lease, sent: number): boolean {
    const isInTime = performance.now() + this.environment.pushTimeoutMs < endsAt;
    return isInTime && sent < MAX_REQUESTS && !stopping.aborted;
  }

  /** The next requests. One without a body moves the cursor without a delivery. */
  private async nextRequests(config: ClaimedPush, signal: AbortSignal): Promise<NextRequest[]> {
    const { tenantId, taskId, delivered } = config;
    const { events } = await retryTransient(() => this.tasks.readPage(config, delivered, PAGE), { signal });
    const end = events.at(-1)?.sequence;
    if (end === undefined) throw new Error('the log ends before its head');
    const snapshot = needsTask(config, events)
      ? await retryTransient(() => this.tasks.get(tenantId, taskId), { signal })
      : undefined;
    const isWebhook = config.webhookId !== null;
    const webhook = isWebhook
      ? await retryTransient(() => this.webhooks.target(tenantId, config, delivered), { signal })
      : undefined;
    if (isWebhook && !webhook?.enabled) return [{ through: end }];
    const requests = pushRequests(config, events, {
      snapshot,
      webhook,
      publicUrl: this.environment.publicUrl,
    });
    return requests.length > 0 ? requests : [{ through: end }];
  }

  /**
   * @returns the answer if the receiver has taken it; undefined: the config receives nothing more; or why it was not sent. Rejects if
   * this worker must stop.
   */
  private async send(
    config: ClaimedPush,
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<ReceiverAnswer | Unanswered | Postponed | undefined> {
    const receiver = await this.receiverOf(config, signal);
    if (!receiver || receiver instanceof Unanswered) return receiver;
    const key = { tenantId: config.tenantId, host: new URL(receiver.url).host };
    const name = `${key.tenantId} ${key.host}`;
    if (this.confirmed.has(name)) return this.tryOnce(config, receiver, request, signal);
    const { isConfirmed, failures, waitMs } = await this.receivers.takeTurn(key, this.leaseMs);
    if (waitMs > 0) return new Postponed(waitMs);
    const answer = await this.tryOnce(config, receiver, request, signal);
    if (isConfirmed || !(answer instanceof Unanswered)) {
      if (!isConfirmed) await this.receivers.confirm(key);
      this.confirmed.set(name, true);
      return answer;
    }
    const { reason, status, retryAfter, exchange } = answer;
    const pauseMs = this.pauseAfter(Math.max(failures, config.failures) + 1, answer);
    await this.receivers.refuse(key, failures + 1, pauseMs);
    return new Unanswered(reason, status, retryAfter, pauseMs, exchange);
  }

  private async tryOnce(
    config: ClaimedPush,
    receiver: ReceiverOf,
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<ReceiverAnswer | Unanswered> {
    const started = performance.now();
    try {
      const answer = await this.post(config, receiver, request, signal);
      if (answer instanceof Unanswered) return answer;
      const { status, retryAfter, exchange } = answer;
      if (status >= 200 && status < 300) {
        this.metrics.get(DELIVERIES).inc({ outcome: 'delivered' });
        return answer;
      }
      const isRedirect = status >= 300 && status < 400;
      const reason = `it answered HTTP ${status}${isRedirect ? ', and redirects are not followed' : ''}`;
      return new Unanswered(reason, status, retryAfter, undefined, exchange);
    } finally {
      this.metrics.get(REQUEST).observe({}, (performance.now() - started) / 1000);
    }
  }

  /** As it is now. A webhook may have another URL, another secret, or be gone since its config was made. */
  private async receiverOf(
    config: ClaimedPush,
    signal: AbortSignal,
  ): Promise<ReceiverOf | Unanswered | undefined> {
    const { tenantId, webhookId: id, url, authScheme } = config;
    try {
      if (id === null) {
        return { url, secrets: { ...this.secrets.open(config), scheme: authScheme ?? undefined } };
      }
      const read = () => this.webhooks.target(tenantId, config, config.delivered);
      const webhook = await retryTransient(read, { signal });
      if (!webhook?.enabled) return undefined;
      const signingSecrets = this.secrets.inForce({ tenantId, id }, webhook.sealed);
      return { url: webhook.url, secrets: { signingSecrets } };
    } catch (error) {
      if (error instanceof SecretError) return new Unanswered(error.message);
      throw error;
    }
  }

  private async post(
    { tenantId, taskId, configId }: ClaimedPush,
    { url, secrets }: ReceiverOf,
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<ReceiverAnswer | Unanswered> {
    const { pushTimeoutMs } = this.environment;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), pushTimeoutMs);
    const calls = this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId));
    let proofs: Record<string, string> = {};
    const exchangeWith = (answer?: Buffer): string =>
      JSON.stringify(pushExchange(request, proofs, secrets, answer));
    try {
      const { body, sequence } = request;
      const delivery = { id: deliveryId(taskId, configId, sequence), body, url, taskId, at: clock.date() };
      proofs = await this.signer.headers(delivery, secrets);
      const response = await calls.fetch(url, {
        method: 'POST',
        headers: { ...request.headers, ...proofs },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([signal, timeout.signal]),
      });
      const { status, headers } = response;
      const exchange = exchangeWith(await this.drain(response));
      const mode = PUSH_MODES.find((known) => known === headers.get('baton-push-mode')?.trim().toLowerCase());
      return { status, mode, retryAfter: retryAfterMs(headers.get('retry-after')), exchange };
    } catch (error) {
      if (signal.aborted) throw error;
      const late = timeout.signal.aborted ? `it did not answer within ${pushTimeoutMs} ms` : undefined;
      // No text of undici: it may hold a header.
      const reason = late ?? failureReason(error) ?? 'the request could not be sent';
      return new Unanswered(reason, null, 0, undefined, exchangeWith());
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Read a little of the answer's body, so that the connection can be used again. The status alone counts. Never rejects.
   * @returns its first bytes
   */
  private async drain({ body }: Response): Promise<Buffer> {
    const first: Uint8Array[] = [];
    let kept = 0;
    if (!body) return Buffer.alloc(0);
    let left = this.environment.pushResponseBytes;
    const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        if (kept < MAX_SHOWN_BYTES) first.push(value.subarray(0, MAX_SHOWN_BYTES - kept));
        kept += value.byteLength;
        left -= value.byteLength;
        if (left < 0) break;
      }
    } catch {
      // It has hung up, or takes too long.
    }
    await reader.cancel().catch(() => undefined);
    return Buffer.concat(first);
  }

  private async advance(
    config: ClaimedPush,
    through: number,
    lease: Lease,
    answer: (ReceiverAnswer & { ms: number }) | undefined,
  ): Promise<number | undefined> {
    let askedAt = 0;
    // The receiver has it: this is worth every try until another worker may have the config.
    const signal = AbortSignal.timeout(Math.max(1, Math.round(lease.endsAt - performance.now())));
    const head = await retryTransient(
      () => {
        askedAt = performance.now();
        return this.deliveries.advance(config, through, this.leaseMs, answer);
      },
      { signal },
    );
    lease.endsAt = askedAt + this.leaseMs;
    return head;
  }

  /** @returns whether the config was still ours */
  private async fail(config: ClaimedPush, unanswered: Unanswered, log: Logger, ms = 0): Promise<boolean> {
    const { pushGiveUpHours: giveUpHours } = this.environment;
    const { reason, status, exchange } = unanswered;
    const failures = config.failures + 1;
    const error = reason.slice(0, MAX_ERROR_CHARS);
    const retryMs = unanswered.pauseMs ?? this.pauseAfter(failures, unanswered);
    const failure = { status, error, ms, exchange, retryMs, giveUpHours, isGone: status === GONE };
    const state = await this.deliveries.fail(config, failure);
    if (!state) return false;
    this.metrics.get(DELIVERIES).inc({ outcome: state === 'active' ? 'failed' : state });
    if (state === 'active') log.info('push delivery failed', { status, error, failures, retryMs });
    else log.warn('push config has ended', { state, status, error, failures });
    return true;
  }

  /** @returns whether the config was still ours */
  private async postpone(config: ClaimedPush, { waitMs }: Postponed, log: Logger): Promise<boolean> {
    const error = 'the receiver has not taken any delivery of this tenant yet, and another config tries it';
    const { pushGiveUpHours: giveUpHours } = this.environment;
    const state = await this.deliveries.postpone(config, { error, waitMs, giveUpHours });
    if (state === 'dead') {
      this.metrics.get(DELIVERIES).inc({ outcome: state });
      log.warn('push config has ended', { state, error });
    }
    return state !== undefined;
  }

  private pauseAfter(failures: number, { retryAfter }: Unanswered): number {
    const { pushFirstRetryMs: firstMs, pushMaxRetryMs: maxMs } = this.environment;
    return retryPause(failures, { firstMs, maxMs }, retryAfter);
  }
}

type NextRequest = PushRequest | { through: number; body?: undefined };

/** Destination of a request, and the proof of its sender. */
interface ReceiverOf {
  url: string;
  secrets: ReceiverSecrets;
}
