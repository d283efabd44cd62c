import { setTimeout as delay } from 'node:timers/promises';
import { isTerminal } from '../../libs/a2a/src/index.js';
import type { ApiAddress, Credentials } from './caller.js';
import type { ScheduleRecord } from './observations.js';
import type { Services } from './services.js';

const RETRY_MS = 300;
/** A request that is not answered within this is sent again. */
const PATIENCE_MS = 5_000;
const EVERY_MS = 3_000;
const CRON = '*/3 * * * * *';
/** A task takes longer than the time between two of them, now and then. */
const MESSAGE = { parts: [{ text: 'tick' }], metadata: { echo: { chunks: 5, delayMs: 500 } } };
/** Schedules that fire once, spread over the run. */
const ONCE = 6;

interface Row {
  id: string;
  now: Date;
  next_at: Date | null;
  fired: number;
  passed: number;
  state: number | null;
  tasks: string[];
}

interface ScheduleAnswer {
  id: string;
  created_at: string;
  at: string | null;
  next_at: string | null;
}

/** Schedules of each kind, of a tenant of their own, and what has become of their times. */
export class ScheduleLoad {
  private readonly made: Pick<ScheduleRecord, 'id' | 'name' | 'first' | 'everyMs'>[] = [];

  constructor(
    private readonly apis: () => Promise<readonly ApiAddress[]>,
    private readonly who: Credentials,
  ) {}

  /** Create the schedules. @param lastsMs for how long the faults last */
  async start(lastsMs: number): Promise<void> {
    for (const overlap of ['skip', 'queue', 'allow', 'cancel-previous']) {
      for (const missed of ['fire-once', 'skip']) {
        await this.create({ name: `${overlap}-${missed}`, overlap, missed, cron: CRON, message: MESSAGE });
      }
    }
    for (let n = 1; n <= ONCE; n++) {
      const at = new Date(Date.now() + Math.max(2_000, (lastsMs * n) / (ONCE + 1))).toISOString();
      await this.create({ name: `once-${n}`, at, message: MESSAGE });
    }
  }

  /** What has become of them, as Postgres has it at one moment. */
  async outcome(services: Services): Promise<ScheduleRecord[]> {
    const rows = await services.query<Row>(`
      SELECT s.id, now() AS now, s.next_at, s.fired, s.skipped_count + s.missed_count + s.refused_count AS passed,
        (SELECT t.state FROM tasks t WHERE t.tenant_id = s.tenant_id AND t.id = s.last_task_id) AS state,
        ARRAY(
          SELECT t.metadata->'baton.schedule'->>'dueAt' FROM tasks t
          WHERE t.tenant_id = s.tenant_id AND t.metadata->'baton.schedule'->>'id' = s.id::text
        ) AS tasks
      FROM schedules s`);
    const byId = new Map(rows.map((row) => [row.id, row]));
    return this.made.map((made) => {
      const row = byId.get(made.id);
      return {
        ...made,
        readAt: row?.now.getTime() ?? 0,
        next: row?.next_at?.getTime(),
        fired: row?.fired ?? 0,
        passed: row?.passed ?? 0,
        isBusy: row?.state != null && !isTerminal(row.state),
        tasks: (row?.tasks ?? []).map((dueAt) => Date.parse(dueAt)),
      };
    });
  }

  private async create(spec: { name: string; [field: string]: unknown }): Promise<void> {
    const made = await this.send('POST', '', { agent: 'echo', ...spec });
    // The answer may have been lost: then the name is taken.
    const { id, created_at, at } = made ?? (await this.send('GET', `/${spec.name}`, undefined))!;
    // The API counts from when the request came. On a slow Postgres, the schedule is made after its first time.
    const known = at ?? made?.next_at;
    const first = known
      ? Date.parse(known)
      : Math.floor(Date.parse(created_at) / EVERY_MS) * EVERY_MS + EVERY_MS;
    this.made.push({ id, name: spec.name, first, everyMs: at ? undefined : EVERY_MS });
  }

  /** @returns undefined = there is one of that name */
  private async send(
    method: string,
    path: string,
    body: object | undefined,
  ): Promise<ScheduleAnswer | undefined> {
    for (let tries = 0; ; tries++) {
      const apis = await this.apis();
      const answer = await fetch(`${apis[tries % apis.length]!.url}/v1/schedules${path}`, {
        method,
        headers: { authorization: `Bearer ${this.who.token}`, 'content-type': 'application/json' },
        signal: AbortSignal.timeout(PATIENCE_MS),
        ...(body && { body: JSON.stringify(body) }),
      }).catch(() => undefined);
      if (answer?.status === 409) return undefined;
      if (answer?.ok) return (await answer.json()) as ScheduleAnswer;
      await answer?.text();
      if (answer?.status === 400) throw new Error(`the schedule ${path} is refused`);
      await delay(RETRY_MS);
    }
  }
}
