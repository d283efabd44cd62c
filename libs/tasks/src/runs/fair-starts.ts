import { Environment } from '@baton/config';
import { gauge, Metrics, RecentHolders } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { AppendRefused } from '../core/append-refused.js';

const HELD = gauge(
  'baton_worker_runs_held',
  'Claimed runs that wait in this worker until others of their tenant have begun',
);

/** Runs of a tenant that may be young at the same time in a worker, beside those of a light tenant. */
const YOUNG_RUNS = 2;
/** A run is young until it ends, or for this time in ms. One that lasts longer waits for others most of the time, and costs little. */
const YOUNG_MS = 250;
/** How long a tenant counts as active after a start, in ms. */
const ACTIVE_MS = 2_000;
/** How long a tenant counts as heavy after a start that found `YOUNG_RUNS` others, in ms. */
const HEAVY_MS = 1_000;
/** Tenants that a worker remembers as heavy. */
const MAX_HEAVY = 1_000;

/** The starts of one tenant. */
class StartLine {
  young = 0;
  /** Runs that may be young at the same time. More while runs of the tenant last. */
  allowed = YOUNG_RUNS;
  /** What begins each run that waits, in their order. */
  readonly waiting = new Set<() => void>();
}

/**
 * Lets few runs of a tenant begin at the same time while a light tenant is active: one with fewer than `YOUNG_RUNS` young runs.
 * Most of what a short run costs a worker, Postgres and an API comes with its start, and a call of a light tenant waits for all that has
 * come before. Tenants that are all heavy do not wait for each other (docs/inside/adr/0096-few-starts-beside-others.md).
 */
@Injectable()
export class FairStarts {
  private readonly lines = new Map<string, StartLine>();
  private readonly heavy = new LRUCache<string, true>({ max: MAX_HEAVY, ttl: HEAVY_MS });
  private readonly light = new RecentHolders(ACTIVE_MS);
  private readonly isOn: boolean;

  constructor({ reservedSlotsPercent }: Environment, metrics: Metrics) {
    // Who reserves no slots wants the most runs a second.
    this.isOn = reservedSlotsPercent > 0;
    metrics.onScrape(async () => {
      const held = [...this.lines.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
      metrics.of(HELD).set({}, held);
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
    if (line.young >= YOUNG_RUNS) this.heavy.set(tenantId, true);
    else if (!this.heavy.has(tenantId)) this.light.see(tenantId);
    if (this.mayBegin(tenantId, line)) return this.begin(tenantId, line);
    return this.wait(tenantId, line, signal);
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
    return !this.isOn || young < allowed || !this.light.hasOthers(tenantId);
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
    for (const begin of line.waiting) {
      if (!this.mayBegin(tenantId, line)) return;
      line.waiting.delete(begin);
      begin();
    }
    if (line.young === 0) this.lines.delete(tenantId);
  }
}
