import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { ATTACKS } from './attacks.js';
import { FAULT_NAMES, type FaultName } from './fault-plan.js';
import { FAULTS } from './faults.js';
import { MACHINE_FAULTS, type MachineOptions } from './machine.js';
import { type PressureOptions, PRESSURES } from './pressure.js';
import type { Driver } from './services.js';

export interface ChaosOptions {
  tasks: number;
  faults: number;
  /** Everything random follows from it. */
  seed: string;
  driver: Driver;
  /** Whether Baton reaches Postgres through PgBouncer. */
  pooler?: boolean;
  tenants: number;
  apis: number;
  workers: number;
  /** Tasks of pinned agents whose versions change meanwhile; absent: some, by the number of tasks. */
  versions?: number;
  /** Tasks of agents in code that is deployed again and again meanwhile; absent: some, by the number of tasks. */
  code?: number;
  /** Tasks whose callers are at work at the same time, bursts aside. */
  atOnce: number;
  /** Seconds after the last fault in which everything has to end. */
  patience: number;
  /** Only these faults. */
  only?: readonly FaultName[];
  /** Pauses between faults, in percent of the usual ones; default 100. */
  pauses?: number;
  /** Folder in which the processes' logs are kept. */
  logs?: string | undefined;
}

export const USAGE = `npm run chaos -- [options]
  --tasks N        tasks to drive (5000)
  --faults N       faults to strike with (60)
  --seed S         what everything random follows from (a new one)
  --driver D       redis, postgres, or cluster for a Redis Cluster (redis)
  --pooler         reach Postgres through PgBouncer
  --tenants N      (4)
  --apis N         API processes (3)
  --workers N      worker processes (3)
  --versions N     tasks of agents whose versions change meanwhile (5 % of --tasks, at least 12; 0: none)
  --code N         tasks of agents in code that is deployed meanwhile (5 % of --tasks, at least 12; 0: none, and no deploys)
  --at-once N      tasks under way at the same time (64)
  --patience S     seconds after the last fault in which all must have ended (60)
  --pauses P       pauses between faults, in percent of the usual ones (100)
  --only F,G …     only these faults; processes or content for all of a kind
                   processes: ${Object.keys(FAULTS).join(', ')}
                   content: ${Object.keys(ATTACKS).join(', ')}
  --pressure P     no tasks and no faults: an API and the workers, idle, while Postgres gets no CPU
                   burners: 16 endless loops; freeze: its sessions are stopped;
                   locks: its statements wait for a lock
  --machine F      a few tasks, and one fault of a machine
                   disk: the disk of Postgres is full (root only); clocks: they jump two hours ahead, then behind;
                   key: processes with another master key try to join; eviction: Redis deletes keys of the queue
  --seconds N      how long the pressure, or the fault of the machine, lasts (80)
  --logs FOLDER    keep the processes' logs there
  --json           print the result as JSON`;

const options = {
  tasks: { type: 'string', default: '5000' },
  faults: { type: 'string', default: '60' },
  seed: { type: 'string' },
  driver: { type: 'string', default: 'redis' },
  pooler: { type: 'boolean', default: false },
  tenants: { type: 'string', default: '4' },
  apis: { type: 'string', default: '3' },
  workers: { type: 'string', default: '3' },
  versions: { type: 'string' },
  code: { type: 'string' },
  'at-once': { type: 'string', default: '64' },
  patience: { type: 'string', default: '60' },
  pauses: { type: 'string', default: '100' },
  only: { type: 'string' },
  pressure: { type: 'string' },
  machine: { type: 'string' },
  seconds: { type: 'string', default: '80' },
  logs: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

type NumberName =
  | 'tasks'
  | 'faults'
  | 'tenants'
  | 'apis'
  | 'workers'
  | 'versions'
  | 'code'
  | 'at-once'
  | 'patience'
  | 'pauses'
  | 'seconds';

/** The command line. Throws an Error with a plain sentence if it cannot be understood. */
export function readOptions(
  args: string[],
): ChaosOptions & { json: boolean; help: boolean; pressure?: PressureOptions; machine?: MachineOptions } {
  const { values } = parseArgs({ args, options });
  const number = (name: NumberName, min: number) => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < min)
      throw new Error(`--${name} must be a whole number from ${min}`);
    return value;
  };
  const { driver, pooler, only, logs, seed, json, help, pressure, machine } = values;
  if (driver !== 'redis' && driver !== 'postgres' && driver !== 'cluster')
    throw new Error('--driver must be redis, postgres or cluster');
  return {
    tasks: number('tasks', 1),
    faults: number('faults', 0),
    tenants: number('tenants', 1),
    apis: number('apis', 1),
    workers: number('workers', 1),
    atOnce: number('at-once', 1),
    patience: number('patience', 1),
    pauses: number('pauses', 0),
    seed: seed ?? randomBytes(4).toString('hex'),
    driver,
    pooler,
    json,
    help,
    ...(values.versions !== undefined && { versions: number('versions', 0) }),
    ...(values.code !== undefined && { code: number('code', 0) }),
    ...(only !== undefined && { only: faultsNamed(only) }),
    ...(logs !== undefined && { logs }),
    ...(pressure !== undefined && {
      pressure: {
        pressure: pressureNamed(pressure),
        seconds: number('seconds', 1),
        driver: driver === 'cluster' ? 'redis' : driver,
        pooler,
        workers: number('workers', 1),
      },
    }),
    ...(machine !== undefined && {
      machine: {
        fault: machineFaultNamed(machine),
        seconds: number('seconds', 1),
        driver: driver === 'cluster' ? 'redis' : driver,
        workers: number('workers', 1),
      },
    }),
  };
}

function pressureNamed(name: string): PressureOptions['pressure'] {
  const found = PRESSURES.find((each) => each === name);
  if (!found) throw new Error(`--pressure must be ${PRESSURES.join(' or ')}`);
  return found;
}

function machineFaultNamed(name: string): MachineOptions['fault'] {
  const found = MACHINE_FAULTS.find((each) => each === name);
  if (!found) throw new Error(`--machine must be ${MACHINE_FAULTS.join(' or ')}`);
  return found;
}

const KINDS: Record<string, object> = { processes: FAULTS, content: ATTACKS };

function faultsNamed(list: string): FaultName[] {
  return list.split(',').flatMap((name) => {
    const names = Object.keys(KINDS[name] ?? { [name]: 0 }) as FaultName[];
    const unknown = names.find((each) => !FAULT_NAMES.includes(each));
    if (unknown !== undefined)
      throw new Error(
        `--only: there is no fault ${unknown}, but processes, content, ${FAULT_NAMES.join(', ')}`,
      );
    return names;
  });
}
