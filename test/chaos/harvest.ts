import { setTimeout as delay } from 'node:timers/promises';
import { type ApiAddress, Caller, type Credentials, type Witness } from './caller.js';
import { isTerminal } from './dialects.js';
import type { Frame, StoredTask, TaskRecord } from './observations.js';
import type { Services } from './services.js';
import { LOG } from '../support/log-sql.js';

const AT_ONCE = 16;
const PAGE = 100;
const TRIES = 20;
/** A log that does not end within this has no end. */
const LOG_MS = 15_000;

/** A task of a list, and the agent whose it is. */
interface Listed {
  id: string;
  agent: string;
}

/** Reads everything that is stored, as any caller may: each tenant's list, each task, each log. */
export class Harvest {
  constructor(
    private readonly services: Services,
    private readonly apis: () => Promise<readonly ApiAddress[]>,
    private readonly tenants: readonly Credentials[],
    private readonly witness: Witness,
  ) {}

  /** @param records what is known of how each task was driven: a log is read in its caller's generation */
  async gather(records: readonly TaskRecord[]): Promise<StoredTask[]> {
    const generations = new Map(records.map((record) => [record.taskId, record.generation]));
    const attempts = await this.attempts();
    const stored: StoredTask[] = [];
    for (const who of this.tenants) {
      const listed = await this.list(who);
      let next = 0;
      const read = async (): Promise<void> => {
        for (let entry = listed[next++]; entry !== undefined; entry = listed[next++]) {
          const caller = new Caller(who, generations.get(entry.id) ?? '1.0', this.witness);
          stored.push(await this.read(who, caller, entry, attempts.get(entry.id) ?? []));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, read));
    }
    return stored;
  }

  /** All tasks of a tenant; those of both agents. */
  private async list(who: Credentials): Promise<Listed[]> {
    const caller = new Caller(who, '1.0', this.witness);
    const listed = new Map<string, Listed>();
    for (const agent of ['echo', 'scribe']) {
      let pageToken = '';
      do {
        const params = { pageSize: PAGE, ...(pageToken && { pageToken }) };
        const page = await this.result(caller, { task: 'harvest', agent, method: 'ListTasks', params });
        const { tasks, nextPageToken } = page as { tasks?: { id: string }[]; nextPageToken?: string };
        for (const { id } of tasks ?? []) listed.set(id, { id, agent });
        pageToken = nextPageToken ?? '';
      } while (pageToken);
    }
    return [...listed.values()];
  }

  private async read(
    who: Credentials,
    caller: Caller,
    { id: taskId, agent }: Listed,
    attempts: number[],
  ): Promise<StoredTask> {
    const { methods, read } = caller.dialect;
    const request = { task: 'harvest', agent, params: { id: taskId } };
    const snapshot = read(await this.result(caller, { ...request, method: methods.get }));
    if (snapshot.kind !== 'task') throw new Error(`${methods.get} of ${taskId} did not answer with a task.`);
    const log: Frame[] = [];
    // A log that continues has no end to wait for; what there is of it is read at once.
    const deadline = AbortSignal.timeout(LOG_MS);
    for (let tries = 0; tries < TRIES && log.length < attempts.length && !deadline.aborted; tries++) {
      const lastEventId = log.at(-1)?.sequence ?? 0;
      const resume = { ...request, method: methods.subscribe, lastEventId };
      const isTail = !isTerminal(snapshot.state);
      await caller.stream(await this.api(tries), resume, (frame) => {
        log.push(frame);
        return isTail && log.length >= attempts.length ? 'cut' : 'go-on';
      });
    }
    return { tenant: who.tenant, taskId, snapshot, log, attempts };
  }

  private async result(
    caller: Caller,
    request: { task: string; agent: string; method: string; params: object },
  ): Promise<unknown> {
    for (let tries = 0; ; tries++) {
      const outcome = await caller.call(await this.api(tries), request);
      if (outcome.kind === 'result') return outcome.result;
      if (tries === TRIES) throw new Error(`${request.method} was not answered: ${JSON.stringify(outcome)}`);
      await delay(500);
    }
  }

  private async api(n: number): Promise<ApiAddress> {
    const apis = await this.apis();
    return apis[n % apis.length]!;
  }

  /** The attempt that wrote each event, by task: only Postgres has it. */
  private async attempts(): Promise<Map<string, number[]>> {
    const rows = await this.services.query<{ task_id: string; attempts: number[] }>(
      `SELECT task_id, array_agg(attempt ORDER BY sequence) AS attempts FROM ${LOG} e GROUP BY task_id`,
    );
    return new Map(rows.map(({ task_id: id, attempts }) => [id, attempts]));
  }
}
