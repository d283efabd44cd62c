import { counter, gauge, type Logger, type Metrics } from '@baton/telemetry';

/** A program that turns use one after the other. */
export interface KeepableProgram {
  /** Whether it still answers. Never rejects. */
  responds(): Promise<boolean>;
  /** Ends what the last turn has left behind. @returns whether the program is of use for another turn. Never rejects. */
  tidy(): Promise<boolean>;
  /** Ends the program. Never rejects. */
  close(): Promise<void>;
}

/** The program that a turn needs. */
export interface WantedProgram {
  tenantId: string;
  /** Everything that must be the same, also the tenant and the context. */
  key: string;
  /** How long it waits for the next turn, in ms. */
  keepMs: number;
  /** For the log. */
  server: string;
}

/** The program of a turn. */
export interface ProgramUse<P> {
  program: P;
  /** It was started for this turn. */
  isNew: boolean;
  /** The turn has ended. Never rejects. */
  release(): Promise<void>;
}

/**
 * - `idle`: no turn has come in time. `room`: another context needs the room. `lost`: it has ended by itself, or does not answer.
 * - `shutdown`: the worker stops.
 */
type EndReason = 'idle' | 'room' | 'lost' | 'shutdown';

interface KeptProgram<P> extends WantedProgram {
  program: P;
  inUse: boolean;
  timer?: NodeJS.Timeout;
}

const KEPT = gauge('baton_kept_programs', 'Programs of MCP servers that this worker keeps, by state', [
  'state',
]);
const ENDED = counter(
  'baton_kept_programs_ended_total',
  'Kept programs of MCP servers that this worker has ended, by reason',
  ['reason'],
);

/**
 * The programs of MCP servers that live longer than a turn, in this worker. One turn uses a program at a time, so that two turns do not
 * move the same browser.
 */
export class KeptPrograms<P extends KeepableProgram = KeepableProgram> {
  /** By key. Those without a turn are in the order in which they have been released. */
  private readonly kept = new Map<string, KeptProgram<P>>();
  private readonly ending = new Set<Promise<void>>();
  private isClosed = false;

  constructor(
    private readonly limits: { max: number; maxPerTenant: number },
    private readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {}

  /**
   * The program of a context, or a new one. Never waits for another turn.
   * @param start creates a program. Call `onEnd` when it has ended by itself
   * @returns undefined: another turn uses it, or there is no room. The turn needs a program of its own
   */
  async take(wanted: WantedProgram, start: (onEnd: () => void) => P): Promise<ProgramUse<P> | undefined> {
    const known = this.kept.get(wanted.key);
    if (known?.inUse) return undefined;
    if (known) {
      clearTimeout(known.timer);
      known.inUse = true;
      this.report();
      if (await known.program.responds()) return this.use(known, false);
      await this.end(known, 'lost');
    }
    return this.startNew(wanted, start);
  }

  /** Ends all programs, also those that are released later. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const kept of this.kept.values()) void this.end(kept, 'shutdown');
    await Promise.all(this.ending);
  }

  private async startNew(
    wanted: WantedProgram,
    start: (onEnd: () => void) => P,
  ): Promise<ProgramUse<P> | undefined> {
    const { tenantId, key } = wanted;
    const all = [...this.kept.values()];
    const own = all.filter((kept) => kept.tenantId === tenantId);
    const isOwnFull = own.length >= this.limits.maxPerTenant;
    const isFull = isOwnFull || all.length >= this.limits.max;
    const leaves = isFull ? (isOwnFull ? own : all).find(({ inUse }) => !inUse) : undefined;
    // Another turn may have started it while this one waited for the end of a lost one.
    if (this.isClosed || this.kept.has(key) || (isFull && !leaves)) {
      if (isFull) this.metrics.limitExceeded.inc({ limit: 'keptPrograms' });
      return undefined;
    }
    const ended = leaves && this.end(leaves, 'room');
    const onEnd = (): void => {
      // While a turn uses the program, the turn notices its end.
      if (!kept.inUse) void this.end(kept, 'lost');
    };
    const kept: KeptProgram<P> = { ...wanted, program: start(onEnd), inUse: true };
    this.kept.set(key, kept);
    this.report();
    // So there are never more processes than the bound.
    await ended;
    return this.use(kept, true);
  }

  private use(kept: KeptProgram<P>, isNew: boolean): ProgramUse<P> {
    return { program: kept.program, isNew, release: () => this.release(kept) };
  }

  private async release(kept: KeptProgram<P>): Promise<void> {
    const isOfUse = await kept.program.tidy();
    if (this.isClosed || !isOfUse) return this.end(kept, this.isClosed ? 'shutdown' : 'lost');
    this.kept.delete(kept.key);
    this.kept.set(kept.key, kept);
    kept.inUse = false;
    kept.timer = setTimeout(() => void this.end(kept, 'idle'), kept.keepMs).unref();
    this.report();
  }

  private end(kept: KeptProgram<P>, reason: EndReason): Promise<void> {
    clearTimeout(kept.timer);
    // It was ended before, by a shutdown.
    if (this.kept.get(kept.key) !== kept) return Promise.resolve();
    this.kept.delete(kept.key);
    this.report();
    this.metrics.get(ENDED).inc({ reason });
    const { tenantId, server } = kept;
    this.logger.info('kept MCP program ended', { tenantId, mcpServer: server, reason });
    const ending = kept.program.close().finally(() => this.ending.delete(ending));
    this.ending.add(ending);
    return ending;
  }

  private report(): void {
    const used = [...this.kept.values()].filter(({ inUse }) => inUse).length;
    this.metrics.get(KEPT).set({ state: 'used' }, used);
    this.metrics.get(KEPT).set({ state: 'idle' }, this.kept.size - used);
  }
}
