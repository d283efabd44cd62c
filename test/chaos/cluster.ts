import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { TENANT_SCOPES } from '../../libs/a2a/src/rights.js';
import { type BatonProcess, startProcess } from '../support/baton-process.js';
import type { ApiAddress, Credentials } from './caller.js';

const DIST = join(__dirname, '../../dist');
const RETRY_MS = 250;
/** A process that has not started by then never does. A busy machine takes long. */
const START_MS = 90_000;
/** A process that cannot be started so often, faults or not, has a reason that does not pass. */
const MAX_TRIES = 100;

/** What its callers do needs most scopes. */
const ALL = ['--scopes', TENANT_SCOPES.join(',')];

/** The Baton processes of a run. One that ends is replaced, as a supervisor would do. */
export class Cluster {
  private readonly processes: Record<BatonProcess['kind'], BatonProcess[]> = { api: [], worker: [] };
  /** Processes that we have stopped, so that their end is no crash. */
  private readonly doomed = new Set<number>();
  private readonly starting = new Set<Promise<void>>();
  private stopping = false;
  private readonly starts = new EventEmitter<{ api: []; worker: [] }>().setMaxListeners(0);
  readonly crashes: string[] = [];
  /** Variables of processes that start from now on. */
  private env: Record<string, string>;
  /** What `startWith` had changed last when each process started, by its id. */
  private readonly startedWith = new Map<number, number>();
  private changes = 0;

  constructor(
    env: Record<string, string>,
    /** Folder for the logs of all processes; undefined = they are not kept. */
    private readonly logs: string | undefined,
  ) {
    this.env = env;
  }

  async start(apis: number, workers: number): Promise<void> {
    await this.run('libs/database/src/migrate-main.js');
    const started = (n: number, kind: BatonProcess['kind']) =>
      Array.from({ length: n }, () => this.add(kind));
    await Promise.all([...started(apis, 'api'), ...started(workers, 'worker')]);
  }

  /** Where requests may go: a process that was struck stays in the list until it is known to be gone. */
  get apis(): readonly ApiAddress[] {
    return this.processes.api;
  }

  /** As `apis`, and at least one: while all of them are being replaced, waits for the first that is up again. */
  async someApis(giveUp?: AbortSignal): Promise<readonly ApiAddress[]> {
    while (this.apis.length === 0) await once(this.starts, 'api', { signal: giveUp });
    return this.apis;
  }

  get workers(): readonly BatonProcess[] {
    return this.processes.worker;
  }

  /** One that runs, drawn by `pick`. */
  victim(kind: BatonProcess['kind'], pick: <T>(list: readonly T[]) => T): BatonProcess | undefined {
    const list = this.processes[kind].filter(({ pid }) => !this.doomed.has(pid));
    return list.length > 0 ? pick(list) : undefined;
  }

  /** Ends a process, and starts a new one in its place. `kill`: by `kill -9`. `stop`: by SIGTERM. */
  async replace(victim: BatonProcess, how: 'kill' | 'stop' = 'kill'): Promise<void> {
    this.doomed.add(victim.pid);
    await victim[how]();
    this.remove(victim);
    await this.add(victim.kind);
  }

  /** More variables for processes that start from now on. Those that run keep theirs. */
  startWith(more: Record<string, string>): void {
    this.env = { ...this.env, ...more };
    this.changes += 1;
  }

  /** Replaces one worker after the other until none is left that started before the last `startWith`, every other one by `kill -9`. */
  async renewWorkers(): Promise<void> {
    for (let n = 0; !this.stopping; n++) {
      const isOld = ({ pid }: BatonProcess) => (this.startedWith.get(pid) ?? 0) < this.changes;
      const old = this.workers.find((worker) => isOld(worker) && !this.doomed.has(worker.pid));
      if (old) await this.replace(old, n % 2 === 0 ? 'kill' : 'stop');
      else if (this.starting.size === 0) return;
      else await Promise.race(this.starting);
    }
  }

  /** A tenant with a token, made as an operator makes them. */
  async createTenant(slug: string, mark: string): Promise<Credentials> {
    await this.baton('tenants', 'create', slug);
    const made = await this.baton('tokens', 'create', '--tenant', slug, '--json', ...ALL);
    return { tenant: slug, token: (JSON.parse(made) as { token: string }).token, mark };
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.starting);
    const all = [...this.processes.api, ...this.processes.worker];
    await Promise.all(
      all.map(async (each) => {
        this.doomed.add(each.pid);
        each.signal('SIGCONT');
        await each.kill();
        this.keepLog(each);
      }),
    );
  }

  private add(kind: BatonProcess['kind']): Promise<void> {
    const starting = this.startOne(kind).finally(() => this.starting.delete(starting));
    this.starting.add(starting);
    return starting;
  }

  /** Start one; while it cannot (Postgres may be away), again and again. */
  private async startOne(kind: BatonProcess['kind']): Promise<void> {
    for (let tries = 1; !this.stopping; tries++) {
      const { changes } = this;
      const started = await startProcess(kind, this.env, START_MS).catch((error: unknown) => error as Error);
      if (!(started instanceof Error)) {
        // The report of the run judges it.
        started.mayEnd();
        this.startedWith.set(started.pid, changes);
        this.processes[kind].push(started);
        this.starts.emit(kind);
        void started.exited.then((code) => this.ended(started, code));
        return;
      }
      if (tries === MAX_TRIES) throw started;
      await delay(RETRY_MS);
    }
  }

  private ended(process: BatonProcess, code: number | null): void {
    if (this.doomed.has(process.pid)) return;
    this.crashes.push(
      `${process.kind} ${process.pid} ended by itself (${code}): ${process.log().slice(-2000)}`,
    );
    this.remove(process);
    void this.add(process.kind);
  }

  private remove(process: BatonProcess): void {
    const list = this.processes[process.kind];
    const index = list.indexOf(process);
    if (index >= 0) list.splice(index, 1);
    this.keepLog(process);
  }

  private keepLog({ kind, pid, log }: BatonProcess): void {
    if (this.logs !== undefined) writeFileSync(join(this.logs, `${kind}-${pid}.log`), log());
  }

  /** A command on the machine of an API. */
  private baton(...args: string[]): Promise<string> {
    const [api] = this.processes.api;
    const port = api === undefined ? '' : new URL(api.managementUrl).port;
    return this.run('apps/cli/src/main.js', args, { MANAGEMENT_PORT: port });
  }

  private async run(main: string, args: string[] = [], more: Record<string, string> = {}): Promise<string> {
    const env = { ...process.env, ...this.env, ...more };
    const { stdout } = await promisify(execFile)(process.execPath, [join(DIST, main), ...args], { env });
    return stdout;
  }
}
