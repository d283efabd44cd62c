import { cpus, totalmem } from 'node:os';
import type { ChaosRun } from './chaos.js';
import { check, type Defect, DEFECTS, type Finding } from './checks/index.js';
import type { ChaosOptions } from './options.js';
import { recoveryOf } from './recovery.js';

const SHOWN = 40;

/** What a run came to. */
export interface Report {
  options: ChaosOptions;
  machine: string;
  seconds: number;
  tasks: number;
  /** Tasks in the database, those included whose answers were lost. */
  stored: number;
  events: number;
  tasksByKind: Record<string, number>;
  faults: number;
  faultsByKind: Record<string, number>;
  /** Connections that readers opened again, cut by themselves or by a fault. */
  oddAnswers: number;
  foreignAsked: number;
  /** Tasks of the tenant that means ill. */
  attacks: number;
  /** Due times of schedules. */
  dueTimes: number;
  /** Calls over MCP, by how they have ended. */
  mcpCalls: Record<string, number>;
  /** Questions about calls whose outcome was unknown; the harness has approved each. */
  mcpQuestions: number;
  /** Calls that have reached their tool more than once, with the same key. */
  mcpRepeats: number;
  /** Tasks of pinned agents, by how they have ended, and how many were open while a version was stored. */
  pinnedTasks: Record<string, number>;
  pinnedTasksOverChanges: number;
  /** Tasks of agents in code, by how they have ended. */
  codeTasks: Record<string, number>;
  /** How often their code was deployed, how many of the tasks were open meanwhile, and how many were parked and went on. */
  deploys: number;
  codeTasksOverDeploys: number;
  codeTasksParked: number;
  /** Steps in code that were done again, as the ledger explains. */
  stepsRepeated: number;
  defects: Record<Defect, number>;
  /** Of the workers' runs, in ms: all, and those during whose healing nothing else was broken. */
  recovery: Record<'all' | 'alone', ReturnType<typeof recoveryOf>>;
  findings: Finding[];
  passed: boolean;
}

/** Judge a run. */
export function reportOn(options: ChaosOptions, { observations, foreignAsked, seconds }: ChaosRun): Report {
  const { records, stored, faults, struck, oddAnswers, attacks, schedules, mcp, versions, code } =
    observations;
  const findings = [...check(observations)];
  const defects = Object.fromEntries(
    Object.keys(DEFECTS).map((defect) => [
      defect,
      findings.filter((found) => found.defect === defect).length,
    ]),
  ) as Record<Defect, number>;
  const [cpu] = cpus();
  return {
    options,
    machine: `${cpus().length} cores (${cpu?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`,
    seconds: Math.round(seconds),
    tasks: records.length,
    stored: stored.length,
    events: stored.reduce((sum, { log }) => sum + log.length, 0),
    tasksByKind: count(records.map(({ kind }) => kind)),
    faults: faults.length,
    faultsByKind: count(faults.map(({ name }) => name)),
    oddAnswers: oddAnswers.length,
    foreignAsked,
    attacks: attacks.length,
    dueTimes: schedules.reduce((sum, { fired, passed }) => sum + fired + passed, 0),
    mcpCalls: count(
      mcp.records.map(({ kind, server, answered }) => `${kind}, ${server}: ${answered?.state ?? 'no end'}`),
    ),
    mcpQuestions: mcp.records.reduce((sum, { questions }) => sum + questions.length, 0),
    mcpRepeats: mcp.records.reduce((sum, { calls }) => sum + Math.max(0, calls.length - 1), 0),
    pinnedTasks: count(versions.records.map(({ agent, stored }) => `${agent}: ${stored?.state ?? 'no end'}`)),
    pinnedTasksOverChanges: versions.records.filter(({ changes }) => changes > 0).length,
    codeTasks: count(code.records.map(({ agent, stored }) => `${agent}: ${stored?.state ?? 'no end'}`)),
    deploys: code.deploys,
    codeTasksOverDeploys: code.records.filter(({ deploys }) => deploys > 0).length,
    codeTasksParked: code.records.filter(({ parked, isOver }) => parked > 0 && isOver).length,
    stepsRepeated: code.records.reduce(
      (sum, { effects }) => sum + effects.length - new Set(effects.map(({ step }) => step)).size,
      0,
    ),
    defects,
    recovery: {
      all: recoveryOf(struck, records, faults, false),
      alone: recoveryOf(struck, records, faults, true),
    },
    findings,
    passed: findings.length === 0,
  };
}

/** The report as a person reads it. */
export function renderReport(report: Report): string {
  const { options, recovery, findings, defects } = report;
  const row = (name: string, value: string | number) => `${name.padEnd(34)}${value}`;
  const list = (counts: Record<string, number>) =>
    Object.entries(counts).map(([name, value]) => row(`  ${name}`, value));
  const times = ({ runs, p50, p99, max }: (typeof recovery)['all']) =>
    `${seconds(p50)} / ${seconds(p99)} / ${seconds(max)} s (${runs} runs)`;
  const versions = Object.values(report.pinnedTasks).reduce((sum, n) => sum + n, 0);
  return [
    '',
    row('seed', options.seed),
    row('driver', options.driver),
    row('machine', report.machine),
    row('processes', `${options.apis} API, ${options.workers} worker`),
    row('time', `${report.seconds} s`),
    row('tasks', report.tasks),
    ...list(report.tasksByKind),
    row('tasks in the database', report.stored),
    row('events', report.events),
    row('faults', report.faults),
    ...list(report.faultsByKind),
    row('odd answers and broken connections', report.oddAnswers),
    row('asks for others’ tasks', report.foreignAsked),
    row('tasks of the attacker', report.attacks),
    row('due times of schedules', report.dueTimes),
    row(
      'calls over MCP',
      Object.values(report.mcpCalls).reduce((sum, n) => sum + n, 0),
    ),
    ...list(report.mcpCalls),
    row('  unknown outcomes, approved', report.mcpQuestions),
    row('  tools called again', report.mcpRepeats),
    row('tasks with a pinned version', versions),
    ...list(report.pinnedTasks),
    row('  with newer versions meanwhile', report.pinnedTasksOverChanges),
    row('deploys of agents in code', report.deploys),
    ...list(report.codeTasks),
    row('  with deploys meanwhile', report.codeTasksOverDeploys),
    row('  parked, and gone on', report.codeTasksParked),
    row('  steps done again', report.stepsRepeated),
    '',
    ...Object.entries(defects).map(
      ([defect, n]) => `${row(defect, n)}${n > 0 ? `   ${DEFECTS[defect as Defect]}` : ''}`,
    ),
    row('recovery p50 / p99 / max', times(recovery.all)),
    row('  with nothing else broken', times(recovery.alone)),
    '',
    ...findings.slice(0, SHOWN).map(({ defect, task, detail }) => `${defect}  ${task}: ${detail}`),
    ...(findings.length > SHOWN ? [`… and ${findings.length - SHOWN} more`] : []),
    report.passed ? 'PASSED' : `FAILED; again with --seed ${options.seed}`,
  ].join('\n');
}

const seconds = (ms: number): string => (ms / 1000).toFixed(2);

function count(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names.sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
