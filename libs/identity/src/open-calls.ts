import { ProtocolError } from '@baton/a2a';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { untilStatementEnded } from '@baton/postgres';
import { clock, FailureLog, Logger } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { JwtService } from './issuers/jwt.service.js';
import { LimitsService } from './limits.service.js';
import { TokenService } from './token.service.js';
import type { RefusedToken } from './token-state.js';
import type { Caller } from './caller.js';
import { RefusedTokenError } from './refused-token-error.js';

/** A call ends within twice this time after its token or its tenant, even if the control message about it is lost. */
const CHECK_MS = 400;
/** Callers whose tokens one statement reads. */
const CALLERS_AT_ONCE = 1_000;

interface OpenCall {
  readonly caller: Caller;
  readonly since: number;
  readonly end: (reason: ProtocolError) => void;
}

/**
 * The calls that this process is answering. It ends them when their tenant is suspended, and when their token expires, is
 * revoked or loses rights: at once on a control message, otherwise at the next tick. A tick reads the tokens of
 * all calls that are open for longer in one statement, their tenants in another, and nothing if there are none. It also ends
 * the calls of users whose issuer is no longer trusted.
 */
@Injectable()
export class OpenCalls implements OnModuleInit, OnModuleDestroy {
  private readonly calls = new Set<OpenCall>();
  private readonly failures: FailureLog;
  private timer: NodeJS.Timeout | undefined;
  private stopControl: Unsubscribe | undefined;
  /** The check of tokens that is under way. */
  private checking: Promise<void> | undefined;
  /** What the next check is about: calls of tenants with a token that was changed, and after a tick those open for longer. */
  private due = { tenants: new Set<string>(), isTick: false };

  constructor(
    private readonly tokens: TokenService,
    private readonly jwts: JwtService,
    private readonly limits: LimitsService,
    private readonly messaging: Messaging,
    logger: Logger,
  ) {
    this.failures = new FailureLog('The check of the tokens of open calls', logger);
  }

  async onModuleInit(): Promise<void> {
    this.stopControl = await this.messaging.subscribeControl((message) => {
      // Only its own tokens are read. Else a tenant could make every API read the tokens of all open calls.
      if (message.type === 'token-revoked') {
        this.due.tenants.add(message.tenantId);
        this.check();
      }
      if (message.type === 'tenant-suspended') void this.checkTenants(new Set([message.tenantId]));
    });
    this.timer = setInterval(() => this.tick(), CHECK_MS).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
    this.stopControl?.();
  }

  /**
   * Watches the token of a call.
   * @param end called once, with the error for the caller, when the token is no longer valid
   * @returns ends the watch
   */
  watch(caller: Caller, end: (reason: ProtocolError) => void): () => void {
    const call: OpenCall = { caller, since: performance.now(), end };
    this.calls.add(call);
    return () => void this.calls.delete(call);
  }

  /** Ends the calls of those of the tenants that are suspended. Never rejects. */
  private async checkTenants(tenantIds: ReadonlySet<string>): Promise<void> {
    // First let all caches drop their old values.
    await Promise.resolve();
    for (const tenantId of tenantIds) {
      try {
        await this.limits.assertActive(tenantId);
      } catch (error) {
        if (error instanceof ProtocolError)
          this.endCalls(({ caller }) => caller.tenantId === tenantId && error);
        else this.failures.failed(error);
      }
    }
  }

  private tick(): void {
    const now = clock.now();
    this.endAll(({ caller: { expiresAt } }) =>
      expiresAt && expiresAt.getTime() <= now ? 'expired' : undefined,
    );
    this.due.isTick = true;
    this.check();
  }

  /** One check at a time. */
  private check(): void {
    const { tenants, isTick } = this.due;
    if (this.checking || (tenants.size === 0 && !isTick)) return;
    this.due = { tenants: new Set(), isTick: false };
    // The guard has just verified the tokens of newer calls, and most calls are short.
    const before = isTick ? performance.now() - CHECK_MS : -Infinity;
    const callers: Caller[] = [];
    for (const { caller, since } of this.calls) {
      if (since <= before || tenants.has(caller.tenantId)) callers.push(caller);
    }
    if (callers.length === 0) return;
    this.checking = this.endRefused(callers)
      .then(
        () => this.failures.worked(),
        (error: unknown) => {
          this.failures.failed(error);
          return untilStatementEnded(error);
        },
      )
      .finally(() => {
        this.checking = undefined;
        this.check();
      });
  }

  private async endRefused(callers: readonly Caller[]): Promise<void> {
    for (let i = 0; i < callers.length; i += CALLERS_AT_ONCE) {
      const some = callers.slice(i, i + CALLERS_AT_ONCE);
      for (const refused of [await this.tokens.refused(some), await this.jwts.refused(some)]) {
        if (refused.size > 0) this.endAll(({ caller }) => refused.get(caller));
      }
    }
    const tenantIds = new Set(callers.map(({ tenantId }) => tenantId));
    await this.checkTenants(await this.limits.inactive([...tenantIds]));
  }

  private endAll(reasonOf: (call: OpenCall) => RefusedToken | undefined): void {
    this.endCalls((call) => {
      const reason = reasonOf(call);
      return reason !== undefined && new RefusedTokenError(reason);
    });
  }

  private endCalls(errorOf: (call: OpenCall) => ProtocolError | false): void {
    for (const call of this.calls) {
      const error = errorOf(call);
      if (!error) continue;
      this.calls.delete(call);
      call.end(error);
    }
  }
}
