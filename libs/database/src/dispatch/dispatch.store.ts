import { Injectable } from '@nestjs/common';
import { Database, type Statement, type Values } from '../connection/database.js';
import { DISPATCH, LOCK_TENANTS, LOOK, type LookRow } from './dispatch-sql.js';
import type { LimitOverrides } from '../catalog/catalog-records.js';
import type { RunToEnqueue } from '../tasks/records.js';
import { type RunRow, runOf } from '../runs/run-sql.js';

/** Tenants of one look; there may be more, which the next one sees. */
const MOST_TENANTS = 256;
const FIRST = '00000000-0000-0000-0000-000000000000';

/** How many dispatch slots are taken at one moment. */
export interface SlotUsage {
  /** How many runs the live workers can execute at once. */
  workerSlots: number;
  /** Runs on the queue or running, by tenant. */
  inFlight: ReadonlyMap<string, number>;
  /** Tenants with runs that wait for a slot, and what the operator has set for them. */
  waiting: ReadonlyMap<string, LimitOverrides>;
}

/** Dispatch slots for the waiting runs of a tenant. */
export interface Grant {
  tenantId: string;
  slots: number;
  /** Most runs that may be in flight, exactly; null = any number. */
  most: number | null;
}

/** Which runs may be on the queue: the queue itself only delivers. */
@Injectable()
export class DispatchStore {
  private next = FIRST;

  constructor(private readonly database: Database) {}

  /** @param liveMs how long ago a worker may have given its last sign of life */
  async look(liveMs: number): Promise<SlotUsage> {
    const values = [liveMs, this.next, MOST_TENANTS];
    const [row] = await this.database.systemQuery<LookRow>(LOOK, values);
    const waiting = row?.waiting ?? [];
    // Tenants that one look has no room for have their turn at the next.
    const partial = waiting.length === MOST_TENANTS || this.next !== FIRST;
    this.next = (waiting.length === MOST_TENANTS && waiting.at(-1)) || FIRST;
    if (partial && waiting.length === 0) return this.look(liveMs);
    return {
      workerSlots: row?.slots ?? 0,
      inFlight: new Map(Object.entries(row?.in_flight ?? {})),
      waiting: new Map(waiting.map((tenantId) => [tenantId, row?.limits?.[tenantId] ?? {}])),
    };
  }

  /**
   * Put the oldest waiting runs of tenants on the queue, as far as there are any.
   * @param capacity most runs in flight of all tenants together
   * @returns the runs, oldest first; they must be enqueued now
   */
  async dispatch(grants: readonly Grant[], capacity: number): Promise<RunToEnqueue[]> {
    const limited = grants.filter(({ most }) => most !== null);
    const values = [
      grants.map(({ tenantId }) => tenantId),
      grants.map(({ slots }) => slots),
      grants.map(({ most }) => most),
      capacity,
    ];
    const lock: [Statement, Values] = [LOCK_TENANTS, [limited.map(({ tenantId }) => tenantId)]];
    const answers = await this.database.systemQueries([
      ...(limited.length > 0 ? [lock] : []),
      [DISPATCH, values],
    ]);
    return (answers.at(-1) as RunRow[]).map(runOf);
  }
}
