import { type Environment, EnvironmentError, settingsReport, withCommandLine } from '@baton/config';
import {
  DatabaseSetupError,
  inspectDatabase,
  inspectPooler,
  isTransient,
  projectFolder,
} from '@baton/database';
import { SecretBox } from '@baton/identity';
import { inspectRedis } from '@baton/messaging';
import { sandboxProblem } from '@baton/sandbox';
import { messageOf } from '@baton/telemetry';
import type { Command } from 'commander';
import { existsSync, readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import {
  type Check,
  checkDatabase,
  checkDisk,
  checkMasterKey,
  checkNode,
  checkRedis,
  checkReplica,
  checkSandbox,
  fault,
  faultAndRemedy,
  ok,
  sentence,
  warning,
} from '../doctor/checks.js';
import { explain, knownFault } from '../explain.js';
import { oneLine, printValue } from '../output.js';
import { findEnvironment } from '../platform.js';

/** `baton doctor`: the faults of an installation, and their remedies. It changes nothing. */
export function addDoctorCommand(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .description(
      'check settings, the sandbox, Postgres, row security, migrations, Redis, clocks, keys and disks; prints the remedy of each fault',
    )
    .option(...JSON_OPTION)
    .action((options: JsonOption) => examine(cli, options));
}

async function examine({ source, terminal }: Cli, { json }: JsonOption): Promise<void> {
  const checks = (await allChecks(source)).map((check) => ({
    ...check,
    ...(check.remedy !== undefined && { remedy: withCommandLine(check.remedy) }),
  }));
  const count = (status: Check['status']) => checks.filter((check) => check.status === status).length;
  const [faults, warnings] = [count('fault'), count('warning')];
  if (json) printValue(terminal, { checks, faults, warnings });
  else terminal.out(checks.map(linesOf).join('\n'));
  if (faults > 0) {
    throw new OperatorError(faults === 1 ? 'There is 1 fault.' : `There are ${faults} faults.`);
  }
}

/** Width of the column of names. */
const NAME_WIDTH = 18;
/** A remedy with a command in it is long, and must not be cut. */
const MAX_TEXT = 500;

function linesOf({ name, status, found, remedy }: Check): string {
  const line = `${status.padEnd(8)} ${name.padEnd(NAME_WIDTH)} ${oneLine(found, MAX_TEXT)}`;
  return remedy === undefined
    ? line
    : `${line}\n${' '.repeat(NAME_WIDTH + 10)}→ ${oneLine(remedy, MAX_TEXT)}`;
}

async function allChecks(source: Cli['source']): Promise<Check[]> {
  const checks = [checkNode(process.versions.node, neededNode()), ...checkSettings(source)];
  let environment: Environment;
  try {
    environment = findEnvironment(source);
  } catch (error) {
    // Faults of single settings are in the list already.
    if (error instanceof EnvironmentError) return [...checks, notAsked('The settings above are not valid')];
    return [...checks, notAsked(explain(error).sentence)];
  }
  const [ofDatabase, ofPooler, ofReplica, ofRedis, disk] = await Promise.all([
    databaseChecks(environment),
    poolerChecks(environment),
    replicaChecks(environment),
    redisChecks(environment),
    diskCheck('Disk', source.BATON_HOME ?? '.baton'),
  ]);
  const sandbox = checkSandbox(environment.executorSandbox, sandboxProblem());
  return [...checks, sandbox, ...ofDatabase, ...ofPooler, ...ofReplica, ...ofRedis, ...disk];
}

const notAsked = (found: string): Check =>
  fault('Postgres', `could not be asked. ${found}`, 'Mend this first, then run `npx baton doctor` again.');

/** All wrong settings, and all names that resemble a setting and are none. */
function checkSettings(source: Cli['source']): Check[] {
  const name = 'Settings';
  const { problems, unknown, set } = settingsReport(source);
  const wrong = [
    ...problems.map((problem) => fault(name, problem, 'docs/reference/settings.md has all settings.')),
    ...unknown.map((problem) => warning(name, problem, 'Correct the name, or remove it.')),
  ];
  return wrong.length > 0 ? wrong : [ok(name, `${set.length} set, all valid`)];
}

async function databaseChecks(environment: Environment): Promise<Check[]> {
  try {
    const facts = await inspectDatabase(environment.databaseDirectUrl, environment.databaseSystemKey);
    const box = new SecretBox(environment);
    const newest = environment.masterKey && box.keyId;
    return [
      ...checkDatabase(facts, environment),
      checkMasterKey(facts, newest, (keyId) => box.knows(keyId)),
      // On another machine there is another folder of that name, or none.
      ...(facts.dataDirectory !== undefined && isHere(facts.host)
        ? await diskCheck('Disk of Postgres', facts.dataDirectory)
        : []),
    ];
  } catch (error) {
    const { sentence: found } = explain(error);
    if (/startup parameter/.test(found)) {
      const remedy =
        'DATABASE_URL leads to a pooler: set DATABASE_DIRECT_URL to Postgres itself (docs/operating/postgres.md#a-pooler).';
      return [fault('Postgres', found, remedy)];
    }
    if (error instanceof DatabaseSetupError) return [fault('Role', ...faultAndRemedy(error.message))];
    const known = knownFault(error);
    if (known !== undefined) return [fault('Postgres', ...faultAndRemedy(known))];
    const remedy = isTransient(error)
      ? 'Start Postgres, correct DATABASE_URL, and look at the firewall and at pg_hba.conf.'
      : 'Look at the log of Postgres.';
    return [fault('Postgres', found, remedy)];
  }
}

async function poolerChecks({ isDatabasePooled, databaseUrl }: Environment): Promise<Check[]> {
  if (!isDatabasePooled) return [];
  try {
    await inspectPooler(databaseUrl);
    return [ok('Pooler', 'answers')];
  } catch (error) {
    if (error instanceof DatabaseSetupError) return [fault('Pooler', ...faultAndRemedy(error.message))];
    return [fault('Pooler', explain(error).sentence, 'Start the pooler, or correct DATABASE_URL.')];
  }
}

async function replicaChecks(environment: Environment): Promise<Check[]> {
  if (environment.databaseReplicaUrl === undefined) return [];
  try {
    const facts = await inspectDatabase(environment.databaseReplicaUrl, environment.databaseSystemKey);
    return [checkReplica(facts, environment)];
  } catch (error) {
    const remedy = 'Start the standby, or correct DATABASE_REPLICA_URL. Until then the primary serves lists.';
    return [warning('Replica', explain(error).sentence, remedy)];
  }
}

const isHere = (host: string): boolean => /^(localhost|127\.0\.0\.1|::1|\/.*):\d+$/.test(host);

async function redisChecks({ redisUrl }: Environment): Promise<Check[]> {
  if (redisUrl === undefined) {
    return [
      warning(
        'Redis',
        'is not set: Postgres carries the queue and the signals, at a lower rate',
        'Set REDIS_URL for production (docs/start/production.md).',
      ),
    ];
  }
  try {
    return checkRedis(await inspectRedis(redisUrl));
  } catch (error) {
    const reason = messageOf(error);
    return [fault('Redis', sentence(reason), 'Start Redis, or correct REDIS_URL and its user and password.')];
  }
}

/** The file system of a folder, or of the nearest folder above it that exists. Nothing if it does not say. */
async function diskCheck(name: string, folder: string): Promise<Check[]> {
  let path = resolve(folder);
  while (!existsSync(path) && path !== dirname(path)) path = dirname(path);
  try {
    const { bavail, blocks, bsize } = await statfs(path);
    return [checkDisk(name, path, { free: bavail * bsize, total: blocks * bsize })];
  } catch {
    return [];
  }
}

/** The version of Node.js that package.json asks for. */
function neededNode(): string {
  const { engines } = JSON.parse(readFileSync(join(projectFolder(), 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  return engines.node;
}
