import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { type BatonProcess, startProcess } from './baton-process.js';
import { createDatabase, type TestDatabase } from './database.js';
import { type PrivateRedis, startPrivateRedis } from './redis.js';
import { RestCaller } from './rest-caller.js';
import { asSystem, insertTenant, insertToken } from './tenants.js';

export interface StackOptions {
  driver: 'redis' | 'postgres';
  apis?: number;
  workers?: number;
  env?: Record<string, string>;
  /** Default: a database of the server that all tests share. */
  database?: TestDatabase;
}

/** A tenant of a test, with a token that may do everything a tenant may. */
export interface TestTenant {
  slug: string;
  token: string;
}

/** A whole Baton of its own: database, Redis if the driver needs one, API and worker processes. */
export class Stack {
  readonly apis: BatonProcess[] = [];
  readonly workers: BatonProcess[] = [];
  private tenants = 0;

  private constructor(
    readonly database: TestDatabase,
    readonly redis: PrivateRedis | undefined,
    readonly env: Readonly<Record<string, string>>,
  ) {}

  static async start(options: StackOptions): Promise<Stack> {
    const { driver, apis = 1, workers = 1, env = {} } = options;
    const database = options.database ?? (await createDatabase());
    const redis = driver === 'redis' ? await startPrivateRedis() : undefined;
    const shared = {
      DATABASE_URL: database.url,
      REDIS_URL: redis?.url ?? '',
      DATABASE_SYSTEM_KEY: randomBytes(32).toString('base64'),
    };
    const stack = new Stack(database, redis, { ...shared, ...env });
    try {
      const starting = [
        ...Array.from({ length: apis }, () => stack.addApi()),
        ...Array.from({ length: workers }, () => stack.addWorker()),
      ];
      await Promise.all(starting);
      return stack;
    } catch (error) {
      await stack.stop();
      throw error;
    }
  }

  /** @param openFiles its `ulimit -n` */
  async addApi(env: Record<string, string> = {}, openFiles?: number): Promise<BatonProcess> {
    const api = await startProcess('api', { ...this.env, ...env }, undefined, undefined, openFiles);
    this.apis.push(api);
    return api;
  }

  async addWorker(env: Record<string, string> = {}): Promise<BatonProcess> {
    const worker = await startProcess('worker', { ...this.env, ...env });
    this.workers.push(worker);
    return worker;
  }

  /** The URL of an agent on the n-th API process. */
  url(api: number, agent = 'echo'): string {
    const process = this.apis[api];
    if (!process) throw new Error(`There is no API process ${api}.`);
    return `${process.url}/agents/${agent}`;
  }

  /** A new tenant with a token. */
  async createTenant(...scopes: string[]): Promise<TestTenant> {
    this.tenants += 1;
    const slug = `tenant-${this.tenants}`;
    await insertTenant(this.database.url, slug);
    return { slug, token: await this.createToken(slug, ...scopes) };
  }

  createToken(slug: string, ...scopes: string[]): Promise<string> {
    return insertToken(this.database.url, slug, scopes);
  }

  /** Calls of the REST API with a token. @param api the number of the API process */
  rest(token: string, api = 0): RestCaller {
    const process = this.apis[api];
    if (!process) throw new Error(`There is no API process ${api}.`);
    return new RestCaller(process.url, token);
  }

  /** The options with which `baton` calls the first API with a token. */
  cliOptions(token: string): string[] {
    return ['--url', this.apis[0]!.url, '--token', token];
  }

  /** Runs the command line, in this process. @returns its output */
  async baton(...args: string[]): Promise<string> {
    const { run } = await import('../../apps/cli/src/program.js');
    const out: string[] = [];
    const err: string[] = [];
    const terminal = {
      out: (text: string) => void out.push(text),
      err: (text: string) => void err.push(text),
    };
    // As in the container of an API: the port of operators is that of the environment.
    const management = this.apis[0]?.managementUrl;
    const port = management === undefined ? {} : { MANAGEMENT_PORT: new URL(management).port };
    const source = { ...process.env, ...this.env, ...port };
    const code = await run(args, { source, terminal, stdin: () => Readable.from([]) });
    // An API on a busy machine asks for this.
    if (err.some((line) => line.endsWith('is not ready (503): try again in a moment.'))) {
      await delay(250);
      return this.baton(...args);
    }
    if (code !== 0) throw new Error(err.join('\n'));
    return out.join('\n');
  }

  /**
   * `baton issuers add`, whose keys this process serves. Baton waits five seconds for them. A busy machine gives this process no CPU
   * for longer: then it is called again, as an operator would.
   */
  async addIssuer(url: string, ...options: string[]): Promise<void> {
    for (let isAdded = false; !isAdded;) {
      isAdded = await this.baton('issuers', 'add', url, ...options).then(
        () => true,
        (error: unknown) => {
          if (!String(error).includes('did not answer in time')) throw error;
          return false;
        },
      );
    }
  }

  /**
   * `kill -9` of workers. Their leases, and their places among the live workers, end at once: tests about a crash do not wait for
   * that. A new worker requeues their runs after half of a lease, another one at once.
   */
  async killWorkers(killed = [...this.workers]): Promise<void> {
    await Promise.all(killed.map((worker) => worker.kill()));
    for (const worker of killed) this.workers.splice(this.workers.indexOf(worker), 1);
    await this.endLeases(killed);
  }

  /** `kill -9` of all workers. A new one takes their place. @param env its settings besides those of the stack */
  async replaceWorkers(env: Record<string, string> = {}): Promise<void> {
    await this.killWorkers();
    await this.addWorker(env);
  }

  /**
   * `kill -9` of this worker, and another one in its place, unless a test before has done that: for what is asked on one worker, and answered
   * on another.
   */
  async outlive(worker: BatonProcess): Promise<void> {
    if (this.workers.includes(worker)) await this.replaceWorkers();
  }

  /** Ends the leases of workers, and their places among the live workers, as if they had been silent for long enough. */
  async endLeases(workers: BatonProcess[]): Promise<void> {
    const pids = workers.map(({ pid }) => pid);
    await asSystem(
      this.database.url,
      `UPDATE runs SET lease_expires_at = now() - interval '1 second'
       WHERE state = 'running' AND split_part(worker_id, '-', 1)::int = ANY($1)`,
      [pids],
    );
    await asSystem(this.database.url, 'DELETE FROM workers WHERE pid = ANY($1)', [pids]);
  }

  /** Keeps the logs of the processes in the folder TEST_LOGS, to investigate a failure. */
  private keepLogs(processes: BatonProcess[]): void {
    const folder = process.env.TEST_LOGS;
    if (folder === undefined) return;
    for (const { kind, pid, log } of processes) writeFileSync(join(folder, `${kind}-${pid}.log`), log());
  }

  /** Stop everything and remove what it stored. */
  async stop(): Promise<void> {
    const processes = [...this.apis, ...this.workers];
    await Promise.all(processes.map((process) => process.kill()));
    this.keepLogs(processes);
    await this.redis?.remove();
    await this.database.drop();
  }
}
