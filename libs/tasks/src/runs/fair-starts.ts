import { Environment } from '@baton/config';
import { gauge, Metrics, RecentNames } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { AppendRefused } from '../core/append-refused.js';

const HELD = gauge(
  'baton_worker_runs_held',
  'Claimed runs that wait in this worker until others of their tenant have begun',
);

/** Runs of a heavy tenant that may be young at the same time in a worker, beside those of a light one. */
const YOUNG_RUNS = 2;
/** A run is young until it ends, or for this time in ms. One that lasts longer waits for others most of the time, and costs little. */
const YOUNG_MS = 250;
/** A tenant with so many runs in a worker that are young or wait for their start is heavy. A light one has fewer than `YOUNG_RUNS`. */
const HEAVY_RUNS = 8;
/** How long a tenant counts as light after a start, in ms. */
const LIGHT_MS = 2_000;
/** How long a tenant counts as heavy after a start, in ms. */
const HEAVY_MS = 1_000;

/** The starts of one tenant. */
class StartLine {
  young = 0;
  /** Runs that may be young at the same time. More while runs of the tenant last. */
  allowed = YOUNG_RUNS;
  /** What begins each run that waits, in their order. */
  readonly waiting = new Set<() => void>();
}

/**
 * Lets few runs of a heavy tenant begin at the same time while a light tenant is active. Most of what a short run costs a worker, Postgres
 * and an API comes with its start, and a call of a light tenant waits for all that has come before. Heavy tenants do not wait for each
 * other (docs/inside/adr/0096-few-starts-beside-others.md).
 */
@Injectable()
export class FairStarts {
  private readonly lines = new Map<string, StartLine>();
  private readonly heavy = new RecentNames(HEAVY_MS);
  private readonly light = new RecentNames(LIGHT_MS);
  private readonly isOn: boolean;

  constructor({ reservedSlotsPercent }: Environment, metrics: Metrics) {
    // A deployment without reserved slots has chosen throughput, not fairness.
    this.isOn = reservedSlotsPercent > 0;
    metrics.onScrape(async () => {
      const held = [...this.lines.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
      metrics.get(HELD).set({}, held);
    });
  }

  /**
   * Resolves when a run of the tenant may begin.
   * @param signal of the run
   * @returns to be called when the run has ended
   * @throws AppendRefused if `signal` aborts first
   */
  async enter(tenantId: string, signal: AbortSignal): Promise<() => void> {
    const line = this.lines.get(tenantId) ?? new StartLine();
    this.lines.set(tenantId, line);
    this.classify(tenantId, line);
    if (this.mayBegin(tenantId, line)) return this.begin(tenantId, line);
    return this.wait(tenantId, line, signal);
  }

  private classify(tenantId: string, { young, waiting }: StartLine): void {
    const runs = young + waiting.size;
    if (runs >= HEAVY_RUNS) {
      this.heavy.add(tenantId);
      this.light.forget(tenantId);
    } else if (runs < YOUNG_RUNS && !this.heavy.has(tenantId)) {
      this.light.add(tenantId);
    }
  }

  private wait(tenantId: string, line: StartLine, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal.removeEventListener('abort', giveUp);
        resolve(this.begin(tenantId, line));
      };
      const giveUp = (): void => {
        line.waiting.delete(begin);
        reject(new AppendRefused('the run was stopped'));
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener('abort', giveUp, { once: true });
      line.waiting.add(begin);
    });
  }

  private mayBegin(tenantId: string, { young, allowed }: StartLine): boolean {
    return !this.isOn || young < allowed || !this.heavy.has(tenantId) || this.light.isEmpty;
  }

  private begin(tenantId: string, line: StartLine): () => void {
    line.young += 1;
    let isYoung = true;
    const grownUp = (allowed: number): void => {
      if (!isYoung) return;
      isYoung = false;
      clearTimeout(timer);
      line.young -= 1;
      line.allowed = Math.max(YOUNG_RUNS, allowed);
      this.beginNext(tenantId, line);
    };
    const timer = setTimeout(() => grownUp(line.allowed + 1), YOUNG_MS);
    return () => grownUp(line.allowed - 1);
  }

  private beginNext(tenantId: string, line: StartLine): void {
    // A tenant is heavy as long as many of its runs wait.
    if (line.waiting.size > 0) this.classify(tenantId, line);
    for (const begin of line.waiting) {
      if (!this.mayBegin(tenantId, line)) return;
      line.waiting.delete(begin);
      begin();
    }
    if (line.young === 0) this.lines.delete(tenantId);
  }
}
