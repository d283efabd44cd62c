import { messageOf } from '@baton/telemetry';
import getPort from 'get-port';
import {
  type Environment,
  type EnvironmentSource,
  listenAddress,
  loadEnvironment,
  type LocalEnvironment,
  masterKeyIdsOf,
  ownUrl,
} from '@baton/config';
import { Database, ensureAuditGuard, ensureSystemKey, hasMasterKey, migrate } from '@baton/database';
import { existsSync } from 'node:fs';
import { apiProcess, stopLeftoverApps, workerProcess } from './app-processes.js';
import { prepareDemo } from './demo-tenant.js';
import { FirstAgent } from './first-agent.js';
import type { Demo, Home } from './home.js';
import { withRemedy, StartError } from './start-error.js';
import { LOOPBACK } from './loopback.js';
import { postgresService, redisService } from './own-services.js';
import { newPrintedLink, type PrintedLink } from './printed-link.js';
import { ScriptedModel } from './scripted-model.js';
import { type Supervised, Supervisor, type SupervisorEvents } from './supervisor.js';
import { claimPort } from './claim-port.js';

/** Agents may call models, tools and agents on this machine, unless the setting forbids it. */
const OWN_MACHINE = '127.0.0.0/8, ::1, localhost';

/** The management port, or any free one if it is taken. */
const MANAGEMENT_PORT = 9090;
/** The gRPC port, or any free one if it is taken. */
const GRPC_PORT = 50_051;

/** How often the API is started when others take its ports. */
const MAX_TRIES = 3;

/** A migration that is done sooner shows no lines. */
const QUICK_MIGRATION_MS = 15_000;

/** What came up, for the person at the terminal. */
export interface Started {
  demo: Demo;
  /** URL that signs in to the console once. Unset: the console is off, or not at this machine. */
  signInUrl: string | undefined;
  /** Name and port of the gRPC port. */
  grpc: string;
  /** URL of the metrics. */
  metrics: string;
  notes: string[];
}

/** Everything that `npm start` runs: the services, then one API and the workers. Stops them in the opposite order. */
export class LocalBaton {
  /** In the order in which they are stopped; those of one row at the same time. */
  private readonly rows: Supervisor[][] = [];
  private stopping: Promise<void> | undefined;
  private model: ScriptedModel | undefined;

  constructor(
    private readonly local: LocalEnvironment,
    private readonly home: Home,
    private readonly source: EnvironmentSource,
    private readonly events: SupervisorEvents,
    /** The master key of the database is lost: another one takes its place. */
    private readonly isKeyLost = false,
  ) {}

  /** Rejects with the reason if anything does not come up; `stop` then ends what did. */
  async start(): Promise<Started> {
    await stopLeftoverApps(this.home, this.local.workers);
    // By default other machines cannot reach the API: HOST opens it.
    const host = listenAddress(this.source.HOST?.trim() || LOOPBACK);
    const port = await claimPort(this.local.port, host);
    const postgres = postgresService(this.local, this.home);
    const redis = redisService(this.local, this.home);
    await this.launch(postgres.supervised);
    await this.launch(redis.supervised);
    const services = this.variables(postgres.url() ?? '', redis.url() ?? '', {
      HOST: host,
      PORT: String(port),
    });
    const migrating = loadEnvironment({ ...this.source, ...services });
    await withRemedy(
      this.migrate(postgres.ownerUrl?.() ?? migrating.databaseDirectUrl, migrating),
      postgres.remedy,
    );
    const variables = { ...services, ...(await this.masterKey(migrating)) };
    const environment = loadEnvironment({ ...this.source, ...variables });
    await this.compareMasterKey(environment);
    const demo = await withRemedy(prepareDemo(environment, this.home), redis.remedy);
    const runtime = { databaseUrl: environment.databaseDirectUrl, redisUrl: environment.redisUrl ?? null };
    this.home.writeRuntime(runtime);
    const numbers = Array.from({ length: this.local.workers }, (_, index) => index + 1);
    const workers = numbers.map((number) =>
      workerProcess(this.home, environment, variables, number, (text) => this.events.say(text)),
    );
    const link = environment.consoleEnabled ? newPrintedLink(demo) : undefined;
    const [ports] = await Promise.all([
      this.launchApi(environment, variables, host, link),
      this.launch(workers),
    ]);
    const managementUrl = ownUrl(environment.managementHost, ports.MANAGEMENT_PORT);
    this.home.writeRuntime({ ...runtime, managementUrl });
    const metrics = `${managementUrl}/metrics`;
    const grpc = `${new URL(demo.url).hostname}:${ports.GRPC_PORT}`;
    const guide = await this.prepareGuide(demo, ownUrl(host, String(port)));
    const notes = [postgres.note, redis.note, this.agentsNote(), ...guide, reachNote(host)];
    return { demo, signInUrl: link?.url, grpc, metrics, notes };
  }

  /** Stops all services, in order. Each call returns the same promise. */
  stop(): Promise<void> {
    this.stopping ??= this.stopRows();
    return this.stopping;
  }

  /** Ends everything at once. */
  kill(): void {
    for (const supervisor of this.rows.flat()) supervisor.kill();
  }

  private async stopRows(): Promise<void> {
    for (const row of this.rows) await Promise.all(row.map((supervisor) => supervisor.stop()));
    await this.model?.stop();
    this.home.release();
  }

  /** Starts a row of processes, which will be stopped before all rows that were started earlier. */
  private async launch(processes: Supervised[]): Promise<void> {
    if (this.stopping) throw new StartError('Stopped during the start.');
    const row = processes.map((process) => new Supervisor(process, this.events));
    this.rows.unshift(row);
    await Promise.all(row.map((supervisor) => supervisor.start()));
  }

  /**
   * Starts the scripted model. The first start also makes the agent that uses it, with one task. Never rejects: Baton is of use
   * without them.
   * @returns the lines to print
   */
  private async prepareGuide(demo: Demo, url: string): Promise<string[]> {
    // The model is on this machine.
    if (this.source.OUTBOUND_ALLOW?.trim()) return [];
    try {
      const { modelUrl: former } = demo;
      this.model = await ScriptedModel.start(
        LOOPBACK,
        former === undefined ? undefined : Number(new URL(former).port),
      );
      const modelUrl = this.model.url;
      const agent = new FirstAgent(url, demo.token);
      // A start that has died before it had made the agent has kept no address of its model.
      const isMade = former === undefined && (await agent.make(modelUrl));
      if (former !== undefined && former !== modelUrl) await agent.moveModel(former, modelUrl);
      this.home.writeDemo({ ...demo, modelUrl });
      return isMade ? ['First task: the agent "guide" has answered one; the console shows how.'] : [];
    } catch (error) {
      return [`The example agent "guide" is not ready: ${messageOf(error)}`];
    }
  }

  /**
   * Starts the API on free ports. Another `npm start` may take one of them before the API listens: then the API gets other ones.
   * @returns its ports
   */
  private async launchApi(
    environment: Environment,
    variables: Record<string, string>,
    host: string,
    link: PrintedLink | undefined,
  ): Promise<{ MANAGEMENT_PORT: string; GRPC_PORT: string }> {
    for (let tries = 1; ; tries++) {
      const chosen: [port: number, host: string][] = [];
      const choose = async (setting: string | undefined, port: number, at: string): Promise<string> => {
        if (setting?.trim()) return setting.trim();
        const free = await getPort({ port, host: at });
        chosen.push([free, at]);
        return String(free);
      };
      const ports = {
        MANAGEMENT_PORT: await choose(
          this.source.MANAGEMENT_PORT,
          MANAGEMENT_PORT,
          environment.managementHost,
        ),
        GRPC_PORT: await choose(this.source.GRPC_PORT, GRPC_PORT, host),
      };
      try {
        await this.launch([apiProcess(this.home, environment, { ...variables, ...ports }, link)]);
        return ports;
      } catch (error) {
        const areFree = Promise.all(chosen.map(([port, at]) => claimPort(port, at)));
        const isTaken = await areFree.then(
          () => false,
          () => true,
        );
        if (!isTaken || tries === MAX_TRIES) throw error;
      }
    }
  }

  /** The variable of the master key, unless the environment has one. A new key would read no secret of a database that has one. */
  private async masterKey({
    databaseDirectUrl,
    databaseSystemKey,
  }: Environment): Promise<Record<string, string>> {
    if (this.local.hasMasterKey) return {};
    const isNew = !existsSync(this.home.file('master-key'));
    if (isNew && !this.isKeyLost && (await hasMasterKey(databaseDirectUrl, databaseSystemKey))) {
      throw new StartError(
        `The file ${this.home.shown('master-key')} is gone, and the database was used with this master key: put the file back. ` +
          'If the key is lost, `npm start -- --key-lost` makes a new one. Then set the secrets again.',
      );
    }
    return { BATON_MASTER_KEY: this.home.key('master-key') };
  }

  /** Before any process starts: each would refuse on its own. */
  private async compareMasterKey(environment: Environment): Promise<void> {
    const { databaseDirectUrl: url, databaseSystemKey: systemKey } = environment;
    const masterKeys = masterKeyIdsOf(environment);
    const database = new Database({ url, systemKey, poolSize: 1, allowRlsBypass: true });
    try {
      if (masterKeys && this.isKeyLost) await database.changeMasterKey(masterKeys);
      else await database.assertMasterKey(masterKeys);
    } catch (error) {
      throw new StartError(messageOf(error));
    } finally {
      await database.close();
    }
  }

  private async migrate(ownerUrl: string, { databaseSystemKey: systemKey }: Environment): Promise<void> {
    const isOwn = this.local.databaseUrl === undefined && systemKey !== undefined;
    // A migration needs the key, which may be another one than before.
    if (isOwn) await ensureSystemKey(ownerUrl, systemKey);
    await migrate(ownerUrl, { report: this.lateLines(), systemKey });
    // No process of another release uses a database of our own.
    if (isOwn) {
      await ensureSystemKey(ownerUrl, systemKey);
      await ensureAuditGuard(ownerUrl, systemKey);
    }
  }

  private variables(
    databaseUrl: string,
    redisUrl: string,
    listeners: { PORT: string } & Record<string, string>,
  ): Record<string, string> {
    return {
      DATABASE_URL: databaseUrl,
      // For this process alone.
      MIGRATE_DATABASE_URL: '',
      REDIS_URL: redisUrl,
      ...listeners,
      CORS_ORIGINS: this.source.CORS_ORIGINS?.trim() || ownOrigins(listeners.PORT),
      RECORD_DEFAULT: this.source.RECORD_DEFAULT?.trim() || 'failed',
      OUTBOUND_ALLOW: this.source.OUTBOUND_ALLOW?.trim() || OWN_MACHINE,
      ...(this.local.databaseUrl === undefined &&
        this.local.databaseSystemKey === undefined && {
          DATABASE_SYSTEM_KEY: this.home.key('database-system-key'),
        }),
      PUSH_SIGNING_KEY: this.source.PUSH_SIGNING_KEY?.trim() || this.home.key('push-signing-key'),
    };
  }

  /** Says how far a migration is, unless it is done at once. */
  private lateLines(): (line: string) => void {
    const begin = performance.now();
    return (line) => {
      if (performance.now() - begin > QUICK_MIGRATION_MS) this.events.say(line);
    };
  }

  private agentsNote(): string {
    const { agentsDir, devMode } = this.local;
    const reload = devMode ? ' They are loaded again when their files change.' : '';
    return agentsDir
      ? `Agents: echo and index (built in), and those in ${agentsDir}.${reload}`
      : 'Agents: echo and index (built in); BATON_AGENTS_DIR names a folder with your own.';
  }
}

/** The names that a browser on this machine has for the API. */
const ownOrigins = (port: string): string =>
  `http://localhost:${port},http://127.0.0.1:${port},http://[::1]:${port}`;

/** Who can reach the API, and how to change that. */
const reachNote = (host: string): string =>
  ['127.0.0.1', '::1', 'localhost'].includes(host)
    ? 'Reach: this machine only. HOST=0.0.0.0 lets your network in.'
    : `Reach: all machines that reach ${host}. HOST=${LOOPBACK} limits it to this machine.`;
