import type { Random } from '../chaos/random.js';
import type {
  Alias,
  Answer,
  Attempt,
  Key,
  Operation,
  Quota,
  Retry,
  Said,
  TaskState,
  Verb,
} from './operations.js';
import { isInterrupted, isTerminal, type ModelRun, type ModelTask, type TaskModel } from './task-model.js';

export const TENANTS = ['A', 'B'] as const;
const AGENTS = ['echo', 'other'];
const OWNERS = ['token:a', 'token:b'];
const WORKERS = ['w1', 'w2', 'w3'];
const KEYS = ['K1', 'K2', 'K3'];
/** Ids that callers choose for their tasks. */
const CLIENT_IDS = ['job', 'order'];
const MAX_TASKS = 7;

/** How often the next step of a run comes that has crashed. */
const CRASHES = 0.15;
/** How often each operation comes, before what suits the moment is picked. */
const WEIGHTS: Record<Verb, number> = {
  createTask: 9,
  continueTask: 8,
  cancelTask: 2,
  readTask: 3,
  readEvents: 2,
  findKey: 2,
  findAlias: 1,
  reserveRedelivery: 6,
  confirmRedelivery: 5,
  claimRun: 14,
  pickUpRun: 4,
  appendEvents: 14,
  endTurn: 9,
  writeJournal: 3,
  noteVersion: 1,
  noteError: 1,
  giveUp: 2,
  heartbeat: 3,
  returnToQueue: 2,
  suspend: 6,
  wake: 3,
  postpone: 1,
  isSuspect: 5,
  openChildren: 1,
  dispatch: 6,
  findWork: 2,
  reclaimExpired: 5,
  failPoisoned: 3,
  takeStaleQueued: 1,
  wakeDue: 2,
  wakeAll: 5,
  wakeAsking: 6,
  abandonedChildren: 1,
  expireTasks: 3,
  purgeLogs: 3,
  forgetTombstones: 2,
  dropKeys: 1,
  leaseRunsOut: 6,
  pauseEnds: 5,
  answerTimeEnds: 8,
  queueLoses: 1,
  keyExpires: 2,
  taskGrowsOld: 4,
  tombstoneGrowsOld: 2,
};

/** A worker's process that has, or had, a run. It continues writing until a write is refused, and sometimes after that. */
interface Writer extends Attempt {
  worker: string;
  /** The head of the log that it has read. */
  head: number;
}

/** Draws operations: mostly such as suit what is stored, and now and then any. What it draws follows from the random numbers. */
export class OperationSource {
  private readonly writers: Writer[] = [];
  private names = 0;

  constructor(
    private readonly random: Random,
    private readonly model: () => TaskModel,
  ) {}

  next(): Operation {
    for (;;) {
      const isOfCrash = this.random.chance(CRASHES);
      const operation = isOfCrash ? this.crash() : this.draw(this.random.weighted(WEIGHTS));
      if (operation) return operation;
    }
  }

  /** The next step of a run whose workers die again and again. */
  private crash(): Operation | undefined {
    const crashed = this.model().runs.filter(
      ({ crashes, state }) => crashes > 0 && (state === 'queued' || state === 'running'),
    );
    if (crashed.length === 0) return undefined;
    const { tenant, name: run, state, lease, hasSlot, pause } = this.random.pick(crashed);
    if (state === 'running' && lease === 'lasts') return { verb: 'leaseRunsOut', tenant, run };
    if (state === 'running') return { verb: this.random.pick(['reclaimExpired', 'failPoisoned']) };
    if (hasSlot) return { verb: 'claimRun', tenant, run, worker: this.random.pick(WORKERS), again: false };
    if (typeof pause === 'number') return { verb: 'pauseEnds', tenant, run };
    return {
      verb: 'dispatch',
      grants: [{ tenant, slots: 3, maxInFlight: null }],
      capacity: 100,
      reserve: { upTo: 1, slots: 0 },
    };
  }

  /** Learn from an answer what workers learn from it. */
  observe(operation: Operation, answer: Answer): void {
    if (operation.verb === 'claimRun' || operation.verb === 'pickUpRun') {
      const run = this.model().runs.find(({ name }) => name === operation.run);
      if (!run || typeof answer !== 'object' || answer === null) return;
      const { attempt, head, working } = answer as {
        attempt: number;
        head: number;
        working: { isAppended: boolean } | null;
      };
      const { tenant, task, name } = run;
      const known = working?.isAppended === false ? 1 : head;
      this.writers.push({ tenant, task, run: name, attempt, worker: operation.worker, head: known });
    }
    if (operation.verb === 'appendEvents' || operation.verb === 'endTurn') {
      const { writer, events } = operation;
      if (typeof answer !== 'object') return;
      const written = events.length + (operation.verb === 'endTurn' ? 1 : 0);
      for (const one of this.writers) {
        if (one.run === writer.run && one.attempt === writer.attempt) one.head = operation.head + written;
      }
    }
  }

  private draw(verb: Verb): Operation | undefined {
    const { random } = this;
    switch (verb) {
      case 'createTask':
        return this.createTask();
      case 'continueTask': {
        const task = this.task((one) => isInterrupted(one), 0.75);
        if (!task) return undefined;
        const agent = this.rarely() ? random.pick(AGENTS) : task.agent;
        const tenant = this.tenantOf(task);
        this.names += 1;
        const run = `${task.name}/${this.names}`;
        return {
          verb,
          tenant,
          task: task.name,
          agent,
          run,
          says: this.text('m'),
          key: this.key(),
          quota: this.quota(),
          retry: this.retry(),
        };
      }
      case 'cancelTask': {
        const task = this.task((one) => !isTerminal(one), 0.8);
        if (!task) return undefined;
        return {
          verb,
          tenant: this.tenantOf(task),
          task: task.name,
          agent: random.chance(0.5) ? null : this.rarely() ? random.pick(AGENTS) : task.agent,
          owner: random.chance(0.6) ? undefined : this.rarely() ? random.pick(OWNERS) : task.owner,
          metadata: random.chance(0.3) ? { [random.pick(['x', 'y'])]: this.text('v') } : undefined,
        };
      }
      case 'readTask': {
        const { tombstones } = this.model();
        if (tombstones.length > 0 && random.chance(0.2)) {
          const [gone, tenant] = random.pick(tombstones);
          return { verb, tenant, task: gone };
        }
        const task = this.task();
        return task && { verb, tenant: this.tenantOf(task), task: task.name };
      }
      case 'readEvents': {
        const task = this.task();
        return (
          task && {
            verb,
            tenant: this.tenantOf(task),
            task: task.name,
            after: random.integer(0, 6),
            limit: random.integer(1, 8),
          }
        );
      }
      case 'findKey':
        return { verb, tenant: this.tenant(), key: this.key(1)! };
      case 'findAlias': {
        const agent = random.chance(0.5) ? undefined : random.pick(AGENTS);
        return {
          verb,
          tenant: this.tenant(),
          agent,
          owner: random.pick(OWNERS),
          client: random.pick(CLIENT_IDS),
        };
      }
      case 'reserveRedelivery':
      case 'confirmRedelivery': {
        const { letters } = this.model();
        const run = letters.length > 0 && random.chance(0.9) ? random.pick(letters) : undefined;
        const any = run ?? this.run(() => true, 1);
        if (!any) return undefined;
        const reserved = run?.redelivery ?? undefined;
        const task = reserved !== undefined && random.chance(0.85) ? reserved : this.text('T');
        const tenant = this.tenantOf(any);
        const name = run?.run ?? (any as ModelRun).name;
        return verb === 'confirmRedelivery'
          ? { verb, tenant, run: name, task }
          : { verb, tenant, run: name, task, again: random.chance(0.35) };
      }
      case 'claimRun': {
        const isReady = (run: ModelRun): boolean => run.state === 'queued' && run.hasSlot;
        const again = random.chance(0.1);
        const run = this.run(again ? (one) => one.state === 'running' : isReady, 0.85);
        if (!run) return undefined;
        const worker = again && run.worker !== null && random.chance(0.7) ? run.worker : random.pick(WORKERS);
        return { verb, tenant: this.tenantOf(run), run: run.name, worker, again };
      }
      case 'pickUpRun': {
        const isNew = (run: ModelRun): boolean =>
          run.state === 'running' && run.attempt === 1 && !this.isHeld(run);
        const run = this.run(isNew, 0.9);
        if (!run) return undefined;
        const worker = run.worker !== null && random.chance(0.85) ? run.worker : random.pick(WORKERS);
        return { verb, tenant: this.tenantOf(run), run: run.name, worker };
      }
      case 'appendEvents': {
        const writer = this.writer();
        if (!writer) return undefined;
        const events = this.events(writer, random.integer(1, 4));
        const metadata = random.chance(0.15) ? { [random.pick(['x', 'y', 'z'])]: this.text('v') } : undefined;
        return { verb, writer: attemptOf(writer), head: this.head(writer), events, metadata };
      }
      case 'endTurn': {
        const writer = this.writer();
        if (!writer) return undefined;
        const states: TaskState[] = [
          'input-required',
          'input-required',
          'auth-required',
          'completed',
          'completed',
          'failed',
          'rejected',
          'canceled',
        ];
        const state = random.pick(states);
        const error = state === 'failed' ? this.text('error ') : undefined;
        const events = this.events(writer, random.integer(0, 2));
        return {
          verb,
          writer: attemptOf(writer),
          head: this.head(writer),
          events,
          state,
          error,
          folds: random.chance(0.6),
          wakeInMs: state === 'input-required' && random.chance(0.7) ? 3_600_000 : undefined,
        };
      }
      case 'writeJournal': {
        const writer = this.writer();
        return (
          writer && { verb, writer: attemptOf(writer), position: random.integer(1, 2), value: this.text('j') }
        );
      }
      case 'noteVersion': {
        const writer = this.writer();
        return writer && { verb, writer: attemptOf(writer), version: random.integer(1, 9) };
      }
      case 'noteError': {
        const writer = this.writer();
        return (
          writer && {
            verb,
            writer: attemptOf(writer),
            crash: random.chance(0.5) ? this.text('crash ') : undefined,
          }
        );
      }
      case 'giveUp': {
        const writer = this.writer();
        return (
          writer && {
            verb,
            writer: attemptOf(writer),
            crash: this.text('crash '),
            runsAlone: random.chance(0.5),
          }
        );
      }
      case 'heartbeat': {
        const worker = random.pick(WORKERS);
        const leases = this.writers.filter((one) => one.worker === worker && random.chance(0.6));
        const isOnce = (one: Writer, i: number): boolean =>
          leases.findIndex(({ run }) => run === one.run) === i;
        return { verb, worker, leases: leases.filter(isOnce).map(attemptOf) };
      }
      case 'returnToQueue': {
        const writer = this.writer();
        return writer && { verb, writer: attemptOf(writer), reserveUpTo: random.integer(1, 3) };
      }
      case 'suspend': {
        const writer = this.writer();
        if (!writer) return undefined;
        const children = this.model().tasks.filter(({ parent }) => parent === writer.task);
        const waitsFor = children.length > 0 && random.chance(0.8) ? children.map(({ name }) => name) : [];
        const forMs = waitsFor.length === 0 || random.chance(0.3) ? 1000 * random.integer(5, 50) : undefined;
        return { verb, writer: attemptOf(writer), waitsFor, forMs };
      }
      case 'wake': {
        const run = this.run(({ state }) => state === 'suspended', 0.9);
        return run && { verb, tenant: this.tenantOf(run), task: run.task };
      }
      case 'postpone': {
        const run = this.run((one) => one.state === 'queued' && one.hasSlot, 0.8);
        return (
          run && { verb, tenant: this.tenantOf(run), run: run.name, forMs: 1000 * random.integer(1, 20) }
        );
      }
      case 'isSuspect': {
        const run = this.run(({ state, crashes }) => state === 'queued' && crashes > 0, 0.8);
        return run && { verb, tenant: this.tenantOf(run), run: run.name };
      }
      case 'openChildren': {
        const task = this.task(({ children }) => children > 0, 0.8);
        return task && { verb, tenant: this.tenantOf(task), task: task.name };
      }
      case 'dispatch': {
        const tenants = random.chance(0.5) ? TENANTS : TENANTS.toReversed();
        const grants = tenants.map((tenant) => ({
          tenant,
          slots: random.integer(1, 3),
          maxInFlight: random.chance(0.5) ? null : random.integer(0, 3),
        }));
        return {
          verb,
          grants,
          capacity: random.chance(0.7) ? 100 : random.integer(0, 4),
          reserve: { upTo: random.integer(1, 3), slots: random.integer(0, 2) },
        };
      }
      case 'findWork':
      case 'reclaimExpired':
      case 'failPoisoned':
      case 'takeStaleQueued':
      case 'wakeDue':
      case 'wakeAll':
      case 'wakeAsking':
      case 'abandonedChildren':
      case 'expireTasks':
      case 'purgeLogs':
      case 'forgetTombstones':
      case 'dropKeys':
        return { verb };
      case 'leaseRunsOut':
        return this.ofRun(verb, ({ state }) => state === 'running');
      case 'pauseEnds':
        return this.ofRun(verb, ({ pause }) => typeof pause === 'number');
      case 'answerTimeEnds': {
        const task = this.task(({ wakesAt }) => wakesAt === 'later', 0.9);
        return task && { verb, tenant: task.tenant, task: task.name };
      }
      case 'queueLoses':
        return this.ofRun(verb, ({ state, hasSlot }) => state === 'queued' && hasSlot);
      case 'keyExpires':
        return { verb, tenant: this.tenant(), key: random.pick(KEYS) };
      case 'taskGrowsOld': {
        const task = this.task(isTerminal, 0.9);
        return task && { verb, tenant: task.tenant, task: task.name };
      }
      case 'tombstoneGrowsOld': {
        const { tombstones } = this.model();
        if (tombstones.length === 0) return undefined;
        const [task, tenant] = random.pick(tombstones);
        return { verb, tenant, task };
      }
    }
  }

  private createTask(): Operation | undefined {
    const { random } = this;
    const { tasks } = this.model();
    if (tasks.filter((task) => !isTerminal(task)).length >= MAX_TASKS) return undefined;
    const key = this.key();
    const writer = random.chance(0.4) ? this.writer() : undefined;
    const parent = writer && tasks.find(({ name }) => name === writer.task);
    this.names += 1;
    const tenant = writer?.tenant ?? this.tenant();
    const [agent, owner] = [random.pick(AGENTS), random.pick(OWNERS)];
    const isAliased = !writer && random.chance(0.2);
    const worker = !isAliased && random.chance(0.35) ? random.pick(WORKERS) : undefined;
    return {
      verb: 'createTask',
      tenant,
      task: `T${this.names}`,
      agent,
      owner,
      says: this.text('m'),
      key,
      quota: this.quota(),
      retry: this.retry(),
      // A task with an id of its caller, or with a parent, is not claimed at acceptance.
      claimFor: writer ? undefined : worker,
      alias: isAliased ? this.alias(tenant, agent, owner) : undefined,
      child: writer && {
        parent: attemptOf(writer),
        root: parent ? this.rootOf(parent) : writer.task,
        maxTasks: random.integer(1, 4),
      },
    };
  }

  private alias(tenant: string, agent: string, owner: string): Alias {
    const client = this.random.pick(CLIENT_IDS);
    const named = this.model().findAlias({ tenant, agent, owner, client }).answer as { task: string } | null;
    return { client, ...(named && this.random.chance(0.5) && { previous: named.task }) };
  }

  private rootOf(task: ModelTask): string {
    const parent = this.model().tasks.find(({ name }) => name === task.parent);
    return parent ? this.rootOf(parent) : task.name;
  }

  /** A key names the turn of a message. Sometimes its task is known to be gone. */
  private key(probability = 0.4): Key | undefined {
    const { random } = this;
    if (!random.chance(probability)) return undefined;
    const name = random.pick(KEYS);
    const content = random.chance(0.5) ? null : this.text('c');
    const named = this.model().taskOfKey(this.tenant(), name);
    const isGone = named !== undefined && !this.model().tasks.some((task) => task.name === named);
    const gone = isGone && random.chance(0.7) ? named : undefined;
    return { name, content, ...(gone !== undefined && { gone }) };
  }

  private quota(): Quota | undefined {
    const { random } = this;
    if (random.chance(0.5)) return undefined;
    return {
      maxInFlight: random.chance(0.2) ? null : random.integer(0, 3),
      maxWaiting: random.chance(0.4) ? null : random.integer(0, 2),
      reserveUpTo: random.integer(1, 3),
      exact: random.chance(0.5),
    };
  }

  private retry(): Retry | undefined {
    const { random } = this;
    if (random.chance(0.4)) return undefined;
    const backoff = random.chance(0.6)
      ? { initialMs: 0, factor: 1, maxMs: 0 }
      : { initialMs: 3000, factor: 3, maxMs: 20_000 };
    return { maxAttempts: random.pick([1, 2, 3, 3, 5]), ...backoff };
  }

  /** The output of a writer. With the first events of a run that was claimed at acceptance it appends the `working` event. */
  private events(writer: Writer, count: number): Said[] {
    const { random } = this;
    const events: Said[] = writer.head === 1 ? [{ state: 'working' }] : [];
    for (let i = 0; i < count; i++) {
      if (random.chance(0.25))
        events.push({ state: 'working', text: random.chance(0.7) ? this.text('m') : undefined });
      else
        events.push({
          artifact: random.pick(['reply', 'report']),
          text: this.text('t'),
          append: random.chance(0.7),
        });
    }
    return events;
  }

  private head(writer: Writer): number {
    return this.random.chance(0.06) ? Math.max(1, writer.head + this.random.pick([-1, 1])) : writer.head;
  }

  /** Mostly one that still owns its run, sometimes a late one. */
  private writer(): Writer | undefined {
    const current = this.writers.filter((writer) => {
      const task = this.model().task(writer.tenant, writer.task);
      return task?.activeRun === writer.run && task.attempt === writer.attempt;
    });
    const late = this.writers.filter((writer) => {
      const run = this.model().run(writer.tenant, writer.run);
      return run && run.attempt > writer.attempt;
    });
    const draw = this.random.next();
    const from = draw < 0.72 ? current : draw < 0.87 ? late : this.writers;
    return from.length > 0 ? this.random.pick(from) : undefined;
  }

  private isHeld(run: ModelRun): boolean {
    return this.writers.some((writer) => writer.run === run.name && writer.attempt === run.attempt);
  }

  /** @param share how often it is one that suits */
  private task(suits: (task: ModelTask) => boolean = () => true, share = 1): ModelTask | undefined {
    return this.pick(this.model().tasks, suits, share);
  }

  private run(suits: (run: ModelRun) => boolean, share: number): ModelRun | undefined {
    return this.pick(this.model().runs, suits, share);
  }

  private pick<T>(all: readonly T[], suits: (one: T) => boolean, share: number): T | undefined {
    const suitable = all.filter(suits);
    if (suitable.length > 0 && this.random.chance(share)) return this.random.pick(suitable);
    return this.random.chance(0.3) && all.length > 0 ? this.random.pick(all) : undefined;
  }

  private ofRun(
    verb: 'leaseRunsOut' | 'pauseEnds' | 'queueLoses',
    suits: (run: ModelRun) => boolean,
  ): Operation | undefined {
    const run = this.pick(this.model().runs, suits, 1);
    return run && { verb, tenant: run.tenant, run: run.name };
  }

  /** Rarely another tenant, for which there is no such task. */
  private tenantOf({ tenant }: { tenant: string }): string {
    return this.random.chance(0.04) ? this.tenant() : tenant;
  }

  private tenant(): string {
    return this.random.chance(0.75) ? TENANTS[0] : TENANTS[1];
  }

  private rarely(): boolean {
    return this.random.chance(0.1);
  }

  private text(prefix: string): string {
    this.names += 1;
    return `${prefix}${this.names}`;
  }
}

const attemptOf = ({ tenant, task, run, attempt }: Attempt): Attempt => ({ tenant, task, run, attempt });
