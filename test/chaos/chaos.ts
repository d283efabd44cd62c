import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadEnvironment } from '../../libs/config/src/environment.js';
import { Attacker } from './attacker.js';
import { Cluster } from './cluster.js';
import { CodeLoad } from './code-load.js';
import { Deployments } from './deployments.js';
import { planFaults, strikeAll } from './fault-plan.js';
import type { Site } from './faults.js';
import { Harvest } from './harvest.js';
import { Load } from './load.js';
import { McpLoad } from './mcp-load.js';
import type { FaultRecord, Observations, StruckRuns } from './observations.js';
import type { ChaosOptions } from './options.js';
import { Outside } from './outside.js';
import { Random } from './random.js';
import { ScheduleLoad } from './schedule-load.js';
import { Services } from './services.js';
import { markOf } from './task-plan.js';
import { VersionLoad } from './version-load.js';

/** Runs a worker holds at once: few, so that a burst fills the queue. */
const SLOTS = 25;
/** The load continues for so long after the last fault began. */
const TAIL_MS = 5000;
/** A rate of tasks that two cores keep up with, for runs with few faults. */
const TASKS_PER_SECOND = 25;

/** Of a hundred tasks: calls over MCP beside them. */
const MCP_PERCENT = 10;
const MIN_MCP_CALLS = 12;
/** And tasks of agents whose versions change. */
const VERSIONS_PERCENT = 5;
const MIN_VERSION_TASKS = 12;
/** And tasks of agents in code that is deployed meanwhile. */
const CODE_PERCENT = 5;
const MIN_CODE_TASKS = 12;

/** The progress of a run. */
export type Progress = (line: string) => void;

/** What a run was, beside what was observed. */
export interface ChaosRun {
  observations: Observations;
  foreignAsked: number;
  seconds: number;
}

/** Start everything, drive the tasks, strike, and read what is left. Never judges. */
export async function runChaos(options: ChaosOptions, tell: Progress): Promise<ChaosRun> {
  const started = performance.now();
  const services = await Services.start(options.driver, options.pooler);
  const environment = {
    ...services.environment,
    BATON_AGENTS_DIR: join(__dirname, 'agents'),
    // The peers of the tenant that means ill are in this process.
    OUTBOUND_ALLOW: '127.0.0.1',
    WORKER_CONCURRENCY: String(SLOTS),
    SSE_HEARTBEAT_MS: '2000',
    LOG_LEVEL: options.logs === undefined ? 'fatal' : 'info',
    // Here workers are killed at random: three in a row say nothing about the run they had in hand.
    MAX_ATTEMPTS: '10',
    // Short, so that some times of schedules are missed and others only late.
    SCHEDULE_LATE_MS: '4000',
    // As in production, and not as in other tests: workers are killed all the time.
    LEASE_MS: '3000',
    // An agent that stands still is ended before its sender gives up.
    EXECUTOR_STALL_MS: '5000',
  };
  const cluster = new Cluster(environment, options.logs);
  const outside = await Outside.start();
  try {
    await cluster.start(options.apis, options.workers);
    const stage = { services, cluster, outside, leaseMs: loadEnvironment(environment).leaseMs };
    const { observations, foreignAsked } = await perform(options, stage, tell);
    return { observations, foreignAsked, seconds: (performance.now() - started) / 1000 };
  } finally {
    await cluster.stop();
    await services.stop();
    await outside.stop();
  }
}

type Stage = Pick<Site, 'services' | 'cluster' | 'leaseMs'> & { outside: Outside };

async function perform(options: ChaosOptions, stage: Stage, tell: Progress) {
  const { services, cluster } = stage;
  const seed = new Random(options.seed);
  const tenants = await Promise.all(
    Array.from({ length: options.tenants }, (_, n) =>
      cluster.createTenant(`tenant-${n + 1}`, markOf(seed, n)),
    ),
  );
  const attacker = await Attacker.start(cluster, await cluster.createTenant('attacker', markOf(seed, -1)));
  const schedules = new ScheduleLoad(
    () => cluster.someApis(),
    await cluster.createTenant('scheduler', markOf(seed, -2)),
  );
  const mcp = await McpLoad.start(
    () => cluster.someApis(),
    await cluster.createTenant('mcp', markOf(seed, -3)),
    stage.outside,
  );
  const versions = await VersionLoad.start(
    () => cluster.someApis(),
    await cluster.createTenant('versions', markOf(seed, -4)),
    stage.outside,
  );
  const deployments = new Deployments(cluster, stage.outside.effects);
  const code = new CodeLoad(
    () => cluster.someApis(),
    await cluster.createTenant('code', markOf(seed, -5)),
    deployments,
    stage.outside,
  );
  const codeTasks = options.code ?? Math.max(MIN_CODE_TASKS, Math.ceil((options.tasks * CODE_PERCENT) / 100));
  if (codeTasks > 0) await code.deploy();
  const load = new Load(seed, options.seed, cluster, tenants);
  const struck: StruckRuns[] = [];
  const plan = planFaults(seed, options.faults, options.driver, options.only, options.pauses);
  const lasts = Math.max((plan.at(-1)?.at ?? 0) + TAIL_MS, (options.tasks / TASKS_PER_SECOND) * 1000);
  tell(`up: ${options.tasks} tasks and ${plan.length} faults in about ${Math.ceil(lasts / 1000)} s`);

  const site: Site = {
    ...stage,
    attacker,
    struck: (runs) => void struck.push(runs),
    burst: (tasks) => load.burst(tasks),
    slots: () => SLOTS * cluster.workers.length,
  };
  await schedules.start(lasts);
  const probing = new AbortController();
  const probes = load.askForForeign(probing.signal);
  const driving = load.run(options.tasks, lasts, options.atOnce);
  const calling = mcp.run(Math.max(MIN_MCP_CALLS, Math.ceil((options.tasks * MCP_PERCENT) / 100)), lasts);
  const versionTasks =
    options.versions ?? Math.max(MIN_VERSION_TASKS, Math.ceil((options.tasks * VERSIONS_PERCENT) / 100));
  const changing = versions.run(versionTasks, lasts);
  const deploying = code.run(codeTasks, lasts, options.patience * 1000);
  const faults = await strikeAll(plan, site, (fault) =>
    tell(`${describeFault(fault)}; ${load.atWork} tasks under way`),
  );
  await deploying;
  await Promise.race([driving, giveTime(load, lasts, options.patience * 1000)]);
  await driving;
  probing.abort();
  await probes;
  const attacks = await attacker.outcome(services, options.patience * 1000);
  await attacker.stop();
  await calling;
  const mcpOutcome = await mcp.outcome(options.patience * 1000);
  await mcp.stop();
  await changing;
  const versionOutcome = await versions.outcome(options.patience * 1000);
  await versions.stop();
  const codeOutcome = await code.outcome();
  code.stop();
  deployments.remove();

  tell(`reading the logs of ${load.records.length} tasks`);
  const stored = await new Harvest(services, () => cluster.someApis(), tenants, load).gather(load.records);
  const { records, oddAnswers, foreignAsks, foreignAsked } = load;
  const marks = Object.fromEntries(tenants.map(({ tenant, mark }) => [tenant, mark]));
  const scheduleRecords = await schedules.outcome(services);
  const { crashes } = cluster;
  const observations: Observations = {
    records,
    stored,
    oddAnswers,
    faults,
    struck,
    foreignAsks,
    attacks,
    schedules: scheduleRecords,
    mcp: mcpOutcome,
    versions: versionOutcome,
    code: codeOutcome,
    marks,
    crashes,
  };
  return { observations, foreignAsked };
}

/**
 * When the faults are over, callers wait no longer than promised. The time begins anew with every task that ends: on
 * a slow machine the rest of the load is still being sent, and that is no defect.
 */
async function giveTime(load: Load, lasts: number, patienceMs: number): Promise<void> {
  await delay(Math.max(0, lasts - load.elapsed()) + patienceMs, undefined, { ref: false });
  while (load.sinceLastEnd() < patienceMs) {
    await delay(patienceMs - load.sinceLastEnd(), undefined, { ref: false });
  }
  load.stopWaiting();
}

const describeFault = ({ name, detail, from, to }: FaultRecord): string =>
  `${new Date(from).toISOString().slice(11, 23)} ${name} (${detail}), mended after ${((to - from) / 1000).toFixed(1)} s`;
