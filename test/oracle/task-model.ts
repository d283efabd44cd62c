import type {
  Answer,
  Arguments,
  Attempt,
  Key,
  Operation,
  Quota,
  Retry,
  Said,
  Snapshot,
  TaskState,
} from './operations.js';

/*
 * The life of tasks and runs, in memory: the executable description of what Baton's stores must do.
 *
 * A task is in one of these states:
 *
 *   submitted ──claim──▶ working ──end──▶ input-required, auth-required ──message──▶ submitted …
 *                                 └─────▶ completed, failed, rejected
 *   input-required ──its time is over──▶ working, with the run that has asked
 *   any but the last four ──cancel──▶ canceled
 *
 * `completed`, `failed`, `rejected` and `canceled` are terminal: nothing follows them. While a task is submitted or working it
 * has one active run, otherwise none. A run is in one of these states:
 *
 *   queued ──claim──▶ running ──end of the turn──▶ succeeded, failed, canceled
 *     ▲                 │  │
 *     │                 │  └──suspend──▶ suspended ──wake──▶ queued, without a slot
 *     ├──hand back, or the lease runs out (a crash)
 *     └──of a succeeded run that has asked: its time is over, without a slot
 *
 * The first three are active. A queued run has a slot (it is on the queue) or waits for one. Only a run with a slot can be
 * claimed. Each claim is the next attempt. The task stores the attempt of its active run: writers of other attempts are
 * refused. When the crashes of a run reach its `maxAttempts`, run and task fail, and a dead letter is stored.
 *
 * Every change of a task that callers can see is an event of its log. Events are numbered 1..n.
 */

/** An operation's answer, and what has happened, by a name in `OUTCOMES`. */
export interface Result {
  outcome: string;
  answer: Answer;
}

interface LogEvent {
  attempt: number;
  says: string;
  artifact?: { name: string; text: string; append: boolean };
}

export interface ModelTask {
  tenant: string;
  name: string;
  agent: string;
  owner: string;
  state: TaskState;
  /** Event n is at index n - 1. */
  log: LogEvent[];
  /** The sequence and text of each message. */
  history: [number, string][];
  activeRun: string | null;
  /** Of the active run, or of the last one. */
  attempt: number;
  parent: string | null;
  /** Tasks below it that are counted for it. */
  children: number;
  metadata: Record<string, string>;
  journal: { position: number; run: string; attempt: number; value: string }[];
  /** It ended longer ago than its retention. */
  isOld: boolean;
  /** Whether it continues without an answer. */
  wakesAt: 'later' | 'over' | null;
  /** The run that continues then, or has continued. */
  wakesRun: string | null;
}

export interface ModelRun {
  tenant: string;
  name: string;
  task: string;
  state: 'queued' | 'running' | 'suspended' | 'succeeded' | 'failed' | 'canceled';
  attempt: number;
  crashes: number;
  worker: string | null;
  lease: 'none' | 'lasts' | 'over';
  /** Of a queued run: it is on the queue. */
  hasSlot: boolean;
  /** It was put on the queue long ago. */
  isStale: boolean;
  /** How long it waits or sleeps, in ms. */
  pause: number | 'over' | null;
  /** The sequence of the event with which its turn was accepted. */
  start: number;
  waitsFor: string[];
  error: string | null;
  lastError: { attempt: number; crash: string | null; runsAlone: boolean } | null;
  retry: Retry;
  /** Version of its agent that the last attempt has run. */
  version: number | null;
  /** Older runs get a slot first. */
  age: number;
}

interface ModelKey {
  task: string;
  sequence: number;
  content: string | null;
  isExpired: boolean;
}

/** The dead letter of a run. */
interface ModelLetter {
  tenant: string;
  task: string;
  agent: string;
  attempts: number;
  reason: string;
  /** The task that sends its message again. */
  redelivery: string | null;
  /** That task was created. */
  isRedelivered: boolean;
}

interface State {
  clock: number;
  tasks: Map<string, ModelTask>;
  runs: Map<string, ModelRun>;
  keys: Map<string, ModelKey>;
  letters: Map<string, ModelLetter>;
  aliases: Map<string, { tenant: string; agent: string; owner: string; client: string; task: string }>;
  tombstones: Map<
    string,
    {
      tenant: string;
      agent: string;
      owner: string;
      head: number;
      messages: number;
      isPurged: boolean;
      isOld: boolean;
    }
  >;
}

const TERMINAL: readonly TaskState[] = ['completed', 'failed', 'rejected', 'canceled'];
const INTERRUPTED: readonly TaskState[] = ['input-required', 'auth-required'];
export const isTerminal = (task: Pick<ModelTask, 'state'>): boolean => TERMINAL.includes(task.state);
export const isInterrupted = (task: Pick<ModelTask, 'state'>): boolean => INTERRUPTED.includes(task.state);

const noState = (): State => ({
  clock: 0,
  tasks: new Map(),
  runs: new Map(),
  keys: new Map(),
  letters: new Map(),
  aliases: new Map(),
  tombstones: new Map(),
});

const NO_QUOTA: Quota = { maxInFlight: null, maxWaiting: null, reserveUpTo: 1, exact: false };
const THREE_TIMES: Retry = { maxAttempts: 3, initialMs: 0, factor: 1, maxMs: 0 };
const MAX_PAUSE_MS = 60_000;
/** Of a task that does not continue without an answer. */
const NEVER: Pick<ModelTask, 'wakesAt' | 'wakesRun'> = { wakesAt: null, wakesRun: null };

/** The text that the caller of a task and its dead letter get. */
export const explain = (crashes: number, lastCrash = 'no news'): string =>
  `Given up after ${crashes} crashes: ${lastCrash}`;

/** Nothing that the model does waits for a lock. Sweeps skip what others have locked: see `apply`. */
const NOTHING: ReadonlySet<string> = new Set();

export class TaskModel {
  private skipped = NOTHING;

  constructor(private readonly state: State = noState()) {}

  clone(): TaskModel {
    return new TaskModel(structuredClone(this.state));
  }

  get tasks(): readonly ModelTask[] {
    return [...this.state.tasks.values()];
  }

  get runs(): readonly ModelRun[] {
    return [...this.state.runs.values()];
  }

  get tombstones(): readonly [name: string, tenant: string][] {
    return [...this.state.tombstones].map(([name, { tenant }]) => [name, tenant]);
  }

  get letters(): readonly { run: string; tenant: string; redelivery: string | null }[] {
    return [...this.state.letters].map(([run, { tenant, redelivery }]) => ({ run, tenant, redelivery }));
  }

  /** Whether or not the key has expired. */
  taskOfKey(tenant: string, key: string): string | undefined {
    return this.state.keys.get(keyName(tenant, key))?.task;
  }

  /**
   * Execute an operation.
   * @param locked names of tasks and runs that another operation has locked at this moment: heartbeats and sweeps skip them
   */
  apply(operation: Operation, locked = NOTHING): Result {
    this.state.clock += 1;
    this.skipped = locked;
    const rule = this[operation.verb] as (args: Operation) => Result;
    return rule.call(this, operation);
  }

  /** Of two runs that were made at the same moment, either may be the older one. */
  swapAges(one: string, other: string): void {
    const [a, b] = [this.state.runs.get(one), this.state.runs.get(other)];
    if (a && b) [a.age, b.age] = [b.age, a.age];
  }

  // ── What callers do ──────────────────────────────────────────────────────────────────────────────────────────────

  createTask(input: Arguments['createTask']): Result {
    const { tenant, task: name, key, child, claimFor } = input;
    const known = key && this.known(tenant, key);
    if (known)
      return { outcome: 'repeated', answer: { ...NOT_CREATED, task: known.task, content: known.content } };
    const slot = this.slotFor(tenant, input.quota);
    if (slot === 'refused') return explained('too many runs wait');
    const content = key?.content ?? null;
    const alias = input.alias && aliasName({ ...input, client: input.alias.client });
    const named = alias === undefined ? undefined : this.state.aliases.get(alias);
    if (named && named.task !== input.alias?.previous) {
      // The key then names a task that does not exist, and counts as new for a caller that repeats it.
      if (key)
        this.state.keys.set(keyName(tenant, key.name), {
          task: name,
          sequence: 1,
          content,
          isExpired: false,
        });
      return {
        outcome: 'another task has the id of its caller',
        answer: { ...NOT_CREATED, task: named.task, content },
      };
    }
    if (alias !== undefined && input.alias) {
      const {
        agent,
        owner,
        alias: { client },
      } = input;
      this.state.aliases.set(alias, { tenant, agent, owner, client, task: name });
    }
    const parent = child && this.parentOf(child.parent);
    if (child && !parent) return explained('the parent is over');
    if (child && parent) {
      const root = this.task(tenant, child.root);
      const counted = [...new Set([parent, ...(root ? [root] : [])])];
      if (Math.max(...counted.map(({ children }) => children)) + 1 > child.maxTasks)
        return explained('too many children');
      for (const task of counted) task.children += 1;
    }
    const claimed = slot === 'queue' && claimFor !== undefined && !child;
    const mayUseReserved = slot === 'queue' && this.inFlight(tenant) < (input.quota ?? NO_QUOTA).reserveUpTo;
    this.state.tasks.set(name, {
      tenant,
      name,
      agent: input.agent,
      owner: parent?.owner ?? input.owner,
      state: 'submitted',
      log: [{ attempt: 0, says: 'task' }],
      history: [[1, input.says]],
      activeRun: `${name}/1`,
      attempt: claimed ? 1 : 0,
      parent: parent?.name ?? null,
      children: 0,
      metadata: {},
      journal: [],
      isOld: false,
      wakesAt: null,
      wakesRun: null,
    });
    const run = this.addRun(tenant, `${name}/1`, name, 1, slot === 'queue', input.retry);
    if (claimed) Object.assign(run, { state: 'running', attempt: 1, worker: claimFor, lease: 'lasts' });
    if (key)
      this.state.keys.set(keyName(tenant, key.name), { task: name, sequence: 1, content, isExpired: false });
    const outcome = claimed ? 'claimed for a worker' : slot === 'queue' ? 'on the queue' : 'waits for a slot';
    const answer = {
      task: name,
      created: true,
      dispatched: slot === 'queue',
      claimed,
      mayUseReserved,
      content,
    };
    return { outcome: parent ? 'is a child' : outcome, answer };
  }

  continueTask(input: Arguments['continueTask']): Result {
    const { tenant, key } = input;
    const task = this.task(tenant, input.task);
    if (!task || task.agent !== input.agent) return explained('no such task');
    const known = key && this.known(tenant, key);
    if (known) return { outcome: 'repeated', answer: { repeated: known.task, content: known.content } };
    if (isTerminal(task)) return explained('the task has ended');
    const isLate = task.activeRun !== null && task.activeRun === task.wakesRun;
    if (isLate) return explained('the time for an answer is over');
    if (!isInterrupted(task)) return explained('the task is busy');
    const slot = this.slotFor(tenant, input.quota);
    if (slot === 'refused') return explained('too many runs wait');
    const mayUseReserved = slot === 'queue' && this.inFlight(tenant) < (input.quota ?? NO_QUOTA).reserveUpTo;
    const sequence = this.say(task, 'submitted');
    this.setState(task, 'submitted');
    task.history.push([sequence, input.says]);
    task.activeRun = input.run;
    task.attempt = 0;
    Object.assign(task, NEVER);
    this.addRun(tenant, input.run, task.name, sequence, slot === 'queue', input.retry);
    if (key)
      this.state.keys.set(keyName(tenant, key.name), {
        task: task.name,
        sequence,
        content: key.content,
        isExpired: false,
      });
    const answer = { sequence, dispatched: slot === 'queue', mayUseReserved };
    return { outcome: slot === 'queue' ? 'on the queue' : 'waits for a slot', answer };
  }

  cancelTask({ tenant, task: name, agent, owner, metadata }: Arguments['cancelTask']): Result {
    const task = this.task(tenant, name);
    const isMeant =
      task && (agent === null || task.agent === agent) && (owner === undefined || task.owner === owner);
    if (!isMeant) return explained('no such task');
    if (isTerminal(task)) return explained('the task has ended');
    const run = task.activeRun;
    const sequence = this.say(task, 'canceled');
    this.setState(task, 'canceled');
    Object.assign(task.metadata, metadata);
    Object.assign(task, NEVER);
    this.finish(task, 'canceled');
    const answer = { sequence, run, parent: task.parent, hasChildren: task.children > 0 };
    return { outcome: run ? 'canceled with its run' : 'canceled without a run', answer };
  }

  /** What every reader gets of a task. */
  readTask({ tenant, task: name }: Arguments['readTask']): Result {
    const task = this.task(tenant, name);
    if (!task) return { outcome: 'no such task', answer: null };
    const { agent, owner, state, log, history, metadata } = task;
    const messages = history.map(([, text]) => text);
    const answer = {
      agent,
      owner,
      state,
      head: log.length,
      history: messages,
      artifacts: fold(log),
      metadata,
    };
    return { outcome: 'found', answer };
  }

  readEvents({ tenant, task: name, after, limit }: Arguments['readEvents']): Result {
    const log = this.task(tenant, name)?.log ?? [];
    const answer = log.map(logLine).slice(after, after + limit);
    return { outcome: answer.length > 0 ? 'found' : 'nothing', answer };
  }

  findKey({ tenant, key }: Arguments['findKey']): Result {
    const stored = this.state.keys.get(keyName(tenant, key.name));
    const known = this.known(tenant, key);
    const answer = known ? { task: known.task, content: known.content } : null;
    if (known) return { outcome: 'found', answer };
    if (!stored) return { outcome: 'unknown', answer };
    return { outcome: stored.isExpired ? 'expired' : 'names a deleted task', answer };
  }

  /** The alias of a deleted task stays as long as its tombstone. */
  findAlias({ tenant, agent, owner, client }: Arguments['findAlias']): Result {
    const found = [...this.state.aliases.values()].filter(
      (one) =>
        one.tenant === tenant &&
        one.owner === owner &&
        one.client === client &&
        (agent === undefined || one.agent === agent),
    );
    const bornAt = ({ task }: { task: string }): number =>
      this.task(tenant, task) ? (this.state.runs.get(`${task}/1`)?.age ?? 0) : 0;
    const [newest] = found.sort((a, b) => bornAt(b) - bornAt(a));
    const answer = newest ? { task: newest.task, agent: newest.agent } : null;
    return { outcome: newest ? 'found' : 'unknown', answer };
  }

  /** Stores which task sends the message of a dead run again. It stays the same until it is confirmed. */
  reserveRedelivery({ tenant, run, task, again }: Arguments['reserveRedelivery']): Result {
    const letter = this.letter(tenant, run);
    if (!letter) return { outcome: 'no dead letter', answer: null };
    const was = { ...letter };
    if (was.isRedelivered && again) Object.assign(letter, { redelivery: task, isRedelivered: false });
    letter.redelivery ??= task;
    const answer = { task: letter.redelivery, isRedelivered: letter.isRedelivered };
    if (was.isRedelivered) return { outcome: again ? 'redelivered again' : 'redelivered before', answer };
    return { outcome: was.redelivery === null ? 'reserved' : 'reserved before', answer };
  }

  confirmRedelivery({ tenant, run, task }: Arguments['confirmRedelivery']): Result {
    const letter = this.letter(tenant, run);
    if (letter?.redelivery !== task || letter.isRedelivered) return refused('another task is reserved', null);
    letter.isRedelivered = true;
    return { outcome: 'confirmed', answer: null };
  }

  // ── What workers do ──────────────────────────────────────────────────────────────────────────────────────────────

  claimRun({ tenant, run: name, worker, again }: Arguments['claimRun']): Result {
    const run = this.run(tenant, name);
    const task = run && this.task(tenant, run.task);
    if (!run) return refused('no such run');
    if (!task || task.activeRun !== name) return refused('over');
    if (run.state === 'suspended') return refused('suspended');
    if (run.state === 'queued' && !run.hasSlot) return refused('no slot');
    const isRepeated = run.state === 'running';
    if (isRepeated && !(again && run.worker === worker)) return refused('another worker has it');
    if (!isRepeated) run.attempt += 1;
    Object.assign(run, { state: 'running', worker, lease: 'lasts' });
    task.attempt = run.attempt;
    const begins = task.state !== 'working';
    const working = begins ? this.say(task, 'working', run.attempt) : null;
    if (begins) this.setState(task, 'working');
    const outcome = isRepeated
      ? 'claimed again, answer lost'
      : run.attempt === 1
        ? 'first attempt'
        : 'next attempt';
    return { outcome, answer: this.claimed(task, run, working, true) };
  }

  /** A run that was claimed at acceptance. The writer appends the `working` event, with the first events of the agent. */
  pickUpRun({ tenant, run: name, worker }: Arguments['pickUpRun']): Result {
    const run = this.run(tenant, name);
    const task = run && this.task(tenant, run.task);
    if (!run || !task) return refused('no such run');
    if (run.state !== 'running') return refused('not running');
    if (run.worker !== worker) return refused('of another worker');
    if (run.attempt !== 1 || task.log.length > 1) return refused('begun already');
    if (run.lease === 'over') return refused('the lease is over');
    return { outcome: 'picked up', answer: this.claimed(task, run, 2, false) };
  }

  appendEvents({ writer, head, events, metadata }: Arguments['appendEvents']): Result {
    const task = this.task(writer.tenant, writer.task);
    const refusal = this.fence(writer) ?? (task?.log.length === head ? undefined : 'the log has moved on');
    if (!task || refusal) return refused(refusal ?? '');
    const isLate = this.run(writer.tenant, writer.run)?.state !== 'running';
    for (const said of events) this.append(task, writer.attempt, said);
    Object.assign(task.metadata, metadata);
    return {
      outcome: isLate ? 'appended after its lease was over' : 'appended',
      answer: { first: head + 1 },
    };
  }

  endTurn({ writer, head, events, state, error, wakeInMs }: Arguments['endTurn']): Result {
    const task = this.task(writer.tenant, writer.task);
    const refusal = this.fence(writer) ?? (task?.log.length === head ? undefined : 'the log has moved on');
    if (!task || refusal) return refused(refusal ?? '');
    for (const said of events) this.append(task, writer.attempt, said);
    this.append(task, writer.attempt, { state });
    const ends = state === 'failed' || state === 'canceled' ? state : 'succeeded';
    this.finish(task, ends, error);
    Object.assign(task, wakeInMs === undefined ? NEVER : { wakesAt: 'later', wakesRun: writer.run });
    return { outcome: state, answer: { first: head + 1, hasChildren: task.children > 0 } };
  }

  writeJournal({ writer, position, value }: Arguments['writeJournal']): Result {
    const refusal = this.fence(writer);
    const task = this.task(writer.tenant, writer.task);
    if (!task || refusal) return refused(refusal ?? '', false);
    const { run, attempt } = writer;
    const there = task.journal.find((entry) => entry.position === position);
    if (!there) {
      task.journal.push({ position, run, attempt, value });
      return { outcome: 'written', answer: true };
    }
    const isMine = there.run === run && there.attempt === attempt;
    return isMine ? { outcome: 'written before', answer: true } : refused('the position is taken', false);
  }

  noteVersion({ writer, version }: Arguments['noteVersion']): Result {
    const run = this.run(writer.tenant, writer.run);
    if (run?.attempt !== writer.attempt) return refused('another attempt is current', false);
    run.version = version;
    return { outcome: 'noted', answer: true };
  }

  noteError({ writer, crash }: Arguments['noteError']): Result {
    const run = this.run(writer.tenant, writer.run);
    if (run?.attempt !== writer.attempt) return refused('another attempt is current', null);
    run.lastError = { attempt: writer.attempt, crash: crash ?? null, runsAlone: false };
    return { outcome: 'noted', answer: null };
  }

  /** The agent's process died, but not its worker: like a lease that runs out now. */
  giveUp({ writer, crash, runsAlone }: Arguments['giveUp']): Result {
    const run = this.run(writer.tenant, writer.run);
    if (run?.attempt !== writer.attempt) return refused(otherAttempt(run), null);
    if (run.state !== 'running') return refused('not running', null);
    run.lastError = { attempt: writer.attempt, crash: crash ?? null, runsAlone };
    run.lease = 'over';
    return { outcome: 'given up', answer: null };
  }

  /** Extends leases, also those that are over, as long as no sweep has taken them. */
  heartbeat({ worker, leases }: Arguments['heartbeat']): Result {
    const lost: string[] = [];
    let extended = 0;
    for (const { tenant, run: name, attempt } of leases) {
      const run = this.run(tenant, name);
      const isMine = run?.state === 'running' && run.worker === worker && run.attempt === attempt;
      if (!isMine) lost.push(name);
      if (!isMine || this.isSkipped(run)) continue;
      run.lease = 'lasts';
      extended += 1;
    }
    const outcome = lost.length > 0 ? 'lost' : extended > 0 ? 'extended' : 'nothing to extend';
    return { outcome, answer: lost.sort() };
  }

  returnToQueue({ writer, reserveUpTo }: Arguments['returnToQueue']): Result {
    const run = this.run(writer.tenant, writer.run);
    if (run?.attempt !== writer.attempt) return refused(otherAttempt(run));
    if (run.state !== 'running') return refused('not running');
    Object.assign(run, { state: 'queued', worker: null, lease: 'none', hasSlot: true, isStale: false });
    return { outcome: 'returned', answer: this.enqueued([run], this.runs.filter(isInFlight), reserveUpTo) };
  }

  suspend({ writer, waitsFor, forMs }: Arguments['suspend']): Result {
    const task = this.task(writer.tenant, writer.task);
    const run = this.run(writer.tenant, writer.run);
    if (!run || task?.activeRun !== writer.run) return refused('another run is active', false);
    if (task.attempt !== writer.attempt) return refused(otherAttempt(run), false);
    if (run.state !== 'running') return refused('not running', false);
    // A run that waits for a time alone waits for its own task.
    const tasks = waitsFor.length > 0 ? [...waitsFor] : [task.name];
    Object.assign(run, {
      state: 'suspended',
      worker: null,
      lease: 'none',
      hasSlot: false,
      waitsFor: tasks,
      pause: forMs ?? null,
    });
    return { outcome: forMs === undefined ? 'suspended' : 'suspended for a time', answer: true };
  }

  wake({ tenant, task: name }: Arguments['wake']): Result {
    const run = this.runs.find(
      (one) => one.tenant === tenant && one.task === name && one.state === 'suspended',
    );
    if (!run) return refused('not suspended', false);
    if (this.stillWaits(run)) return refused('it still waits', false);
    this.queueAgain(run);
    return { outcome: 'woken', answer: true };
  }

  postpone({ tenant, run: name, forMs }: Arguments['postpone']): Result {
    const run = this.run(tenant, name);
    if (run?.state !== 'queued' || !run.hasSlot) return refused('not on the queue', null);
    Object.assign(run, { hasSlot: false, pause: forMs });
    return { outcome: 'postponed', answer: null };
  }

  /** Its workers have died. It must not die with another run again. */
  isSuspect({ tenant, run: name }: Arguments['isSuspect']): Result {
    const run = this.run(tenant, name);
    const isLast = run !== undefined && run.crashes > 0 && run.crashes + 1 >= run.retry.maxAttempts;
    const answer = run?.state === 'queued' && (run.crashes > 1 || isLast);
    const suspect = isLast ? 'has one attempt left' : 'has crashed twice';
    return { outcome: answer ? suspect : 'not suspect', answer };
  }

  openChildren({ tenant, task: name }: Arguments['openChildren']): Result {
    const open = this.tasks.filter(
      (task) => task.tenant === tenant && task.parent === name && !isTerminal(task),
    );
    return { outcome: open.length > 0 ? 'found' : 'none', answer: open.map((task) => task.name).sort() };
  }

  /**
   * The oldest waiting runs of each tenant get slots, tenant by tenant. The first run of a tenant without a run in flight gets one also
   * if there is no capacity left. The first few of a tenant may use a reserved slot, and exceed the capacity by as many.
   */
  dispatch({ grants, capacity, reserve }: Arguments['dispatch']): Result {
    const waiting = this.runs.filter(isWaiting);
    const found = grants.flatMap(({ tenant, slots, maxInFlight }) => {
      const ready = waiting.filter((run) => run.tenant === tenant && isDue(run) && !this.isSkipped(run));
      const inFlight = this.inFlight(tenant);
      const room = maxInFlight === null ? slots : Math.min(slots, Math.max(maxInFlight - inFlight, 0));
      return ready
        .sort(byAge)
        .slice(0, room)
        .map((run, i) => ({ run, number: inFlight + i + 1 }));
    });
    const first = found.filter(({ number }) => number === 1);
    const few = found.filter(({ number }) => number > 1 && number <= reserve.upTo);
    const others = found.filter(({ number }) => number > Math.max(reserve.upTo, 1));
    const left = capacity - this.runs.filter(isInFlight).length;
    const most = Math.max(left, first.length, Math.min(left + reserve.slots, first.length + few.length));
    const chosen = [...first, ...few, ...others].slice(0, most).sort((a, b) => byAge(a.run, b.run));
    for (const { run } of chosen) Object.assign(run, { hasSlot: true, isStale: false });
    const answer = chosen.map(({ run: { name, attempt }, number }) => ({
      run: name,
      attempt,
      mayUseReserved: number <= reserve.upTo,
    }));
    return { outcome: this.whyDispatched(grants, waiting, found.length, chosen.length), answer };
  }

  private whyDispatched(
    grants: Arguments['dispatch']['grants'],
    waiting: ModelRun[],
    found: number,
    chosen: number,
  ): string {
    if (chosen > 0) return 'dispatched';
    if (found > 0) return 'refused: no capacity';
    const asked = waiting.filter((run) => grants.some(({ tenant }) => tenant === run.tenant));
    if (asked.length === 0) return 'nothing waits';
    return asked.some(isDue) ? 'refused: the tenant is full' : 'refused: in backoff';
  }

  // ── What sweeps do ───────────────────────────────────────────────────────────────────────────────────────────────

  findWork(_: object): Result {
    const answer = {
      expiredRuns: this.runs.some(({ lease }) => lease === 'over'),
      staleQueuedRuns: this.runs.some((run) => isOnQueue(run) && run.isStale),
      waitingRuns: this.runs.some((run) => isWaiting(run) && isDue(run)),
      dueSleeps: this.runs.some(isSleepOver),
      waitsForTasks: this.runs.some(waitsForTasks),
      unansweredTasks: this.tasks.some(({ wakesAt }) => wakesAt === 'over'),
      openChildren: this.tasks.some((task) => task.parent !== null && !isTerminal(task)),
    };
    return { outcome: 'looked', answer };
  }

  /** A run whose lease is over has crashed. If it has attempts left it is queued again, at once or after a pause. */
  reclaimExpired(_: object): Result {
    const expired = this.expired().filter((run) => run.crashes + 1 < run.retry.maxAttempts);
    const inFlight = this.runs.filter(isInFlight);
    const now: ModelRun[] = [];
    const isQuarantined = expired.some((run) => quarantineMs(run) > backoffMs(run));
    for (const run of expired) {
      const pause = pauseAfterCrash(run);
      const isReady = pause === 0;
      Object.assign(run, { state: 'queued', worker: null, lease: 'none', hasSlot: isReady, isStale: false });
      run.pause = isReady ? null : pause;
      run.crashes += 1;
      if (isReady) now.push(run);
    }
    const pauses = isQuarantined ? 'in quarantine' : 'in the backoff of its agent';
    const outcome =
      now.length > 0 ? 'on the queue again' : expired.length > 0 ? pauses : 'nothing has expired';
    return { outcome, answer: this.enqueued(now, inFlight) };
  }

  /** A run that has crashed as often as it may fails, with its task. */
  failPoisoned(_: object): Result {
    const failed: string[] = [];
    let outcome = 'nothing is poisoned';
    for (const run of this.expired().filter(({ crashes, retry }) => crashes + 1 >= retry.maxAttempts)) {
      const task = this.task(run.tenant, run.task);
      if (task?.activeRun !== run.name) continue;
      run.crashes += 1;
      outcome = run.crashes > 1 ? 'failed after several crashes' : 'failed at the first crash';
      const lastCrash =
        run.lastError?.attempt === run.attempt ? (run.lastError.crash ?? undefined) : undefined;
      const reason = explain(run.crashes, lastCrash);
      const sequence = this.say(task, `failed: ${reason}`);
      this.setState(task, 'failed');
      task.history.push([sequence, reason]);
      this.finish(task, 'failed', reason);
      this.state.letters.set(run.name, {
        tenant: task.tenant,
        task: task.name,
        agent: task.agent,
        attempts: run.crashes,
        reason,
        redelivery: null,
        isRedelivered: false,
      });
      failed.push(`${run.name} attempt ${run.attempt}, event ${sequence}`);
    }
    return { outcome, answer: failed.sort() };
  }

  takeStaleQueued(_: object): Result {
    const stale = this.runs.filter((run) => isOnQueue(run) && run.isStale && !this.isSkipped(run));
    for (const run of stale) run.isStale = false;
    const answer = this.enqueued(stale, this.runs.filter(isInFlight));
    return { outcome: answer.length > 0 ? 'taken' : 'nothing is stale', answer };
  }

  wakeDue(_: object): Result {
    const due = this.runs.filter((run) => isSleepOver(run) && !this.isSkipped(run));
    for (const run of due) this.queueAgain(run);
    return { outcome: due.length > 0 ? 'woken' : 'nothing is due', answer: due.length };
  }

  wakeAll(_: object): Result {
    const ready = this.runs.filter(
      (run) => waitsForTasks(run) && !this.stillWaits(run) && !this.isSkipped(run),
    );
    for (const run of ready) this.queueAgain(run);
    return { outcome: ready.length > 0 ? 'woken' : 'nothing to wake', answer: ready.length };
  }

  /** Tasks that ask, and have had no answer in time, work again. The run that has asked waits for a slot. */
  wakeAsking(_: object): Result {
    const due = this.tasks.filter((task) => task.wakesAt === 'over' && !this.isSkipped(task));
    const answer = due.flatMap((task) => {
      const run = task.wakesRun === null ? undefined : this.run(task.tenant, task.wakesRun);
      if (!run) return [];
      this.queueAgain(run);
      run.worker = null;
      const sequence = this.say(task, 'working');
      this.setState(task, 'working');
      Object.assign(task, { activeRun: run.name, attempt: run.attempt, wakesAt: null });
      return [`${task.name}, event ${sequence}`];
    });
    return { outcome: due.length > 0 ? 'woken' : 'nothing is due', answer: answer.sort() };
  }

  /** Children that continue although their parent has ended or is gone. */
  abandonedChildren(_: object): Result {
    const abandoned = this.tasks.filter((task) => {
      if (task.parent === null || isTerminal(task)) return false;
      const parent = this.task(task.tenant, task.parent);
      return !parent || isTerminal(parent);
    });
    return {
      outcome: abandoned.length > 0 ? 'found' : 'none',
      answer: abandoned.map(({ name }) => name).sort(),
    };
  }

  /** Retention: a task that ended long ago goes, and leaves a tombstone. */
  expireTasks(_: object): Result {
    const old = this.tasks.filter((task) => isTerminal(task) && task.isOld && !this.isSkipped(task));
    for (const { tenant, name, agent, owner, log, history } of old) {
      this.state.tombstones.set(name, {
        tenant,
        agent,
        owner,
        head: log.length,
        messages: history.length,
        isPurged: false,
        isOld: false,
      });
      this.state.tasks.delete(name);
      for (const [run, letter] of this.state.letters) {
        if (letter.task === name) this.state.letters.delete(run);
      }
    }
    return { outcome: old.length > 0 ? 'deleted' : 'nothing is old', answer: old.length };
  }

  /** The logs, messages and runs of deleted tasks go. */
  purgeLogs(_: object): Result {
    const answer = { events: 0, messages: 0, runs: 0 };
    for (const [name, tombstone] of this.state.tombstones) {
      if (tombstone.isPurged) continue;
      tombstone.isPurged = true;
      answer.events += tombstone.head;
      answer.messages += tombstone.messages;
      for (const run of this.runs.filter(({ task }) => task === name)) {
        this.state.runs.delete(run.name);
        answer.runs += 1;
      }
    }
    return { outcome: answer.events > 0 ? 'purged' : 'nothing to purge', answer };
  }

  forgetTombstones(_: object): Result {
    const old = [...this.state.tombstones].filter(([, tombstone]) => tombstone.isOld && tombstone.isPurged);
    for (const [name] of old) {
      this.state.tombstones.delete(name);
      for (const [alias, { task }] of this.state.aliases) if (task === name) this.state.aliases.delete(alias);
    }
    return { outcome: old.length > 0 ? 'forgotten' : 'nothing is old', answer: old.length };
  }

  dropKeys(_: object): Result {
    const expired = [...this.state.keys].filter(([, key]) => key.isExpired);
    for (const [name] of expired) this.state.keys.delete(name);
    return { outcome: expired.length > 0 ? 'dropped' : 'nothing has expired', answer: expired.length };
  }

  // ── What time does ───────────────────────────────────────────────────────────────────────────────────────────────

  leaseRunsOut({ tenant, run: name }: Arguments['leaseRunsOut']): Result {
    const run = this.run(tenant, name);
    if (run?.state === 'running') run.lease = 'over';
    return passed();
  }

  pauseEnds({ tenant, run: name }: Arguments['pauseEnds']): Result {
    const run = this.run(tenant, name);
    if (run && run.pause !== null) run.pause = 'over';
    return passed();
  }

  answerTimeEnds({ tenant, task: name }: Arguments['answerTimeEnds']): Result {
    const task = this.task(tenant, name);
    if (task?.wakesAt) task.wakesAt = 'over';
    return passed();
  }

  queueLoses({ tenant, run: name }: Arguments['queueLoses']): Result {
    const run = this.run(tenant, name);
    if (run && isOnQueue(run)) run.isStale = true;
    return passed();
  }

  keyExpires({ tenant, key }: Arguments['keyExpires']): Result {
    const stored = this.state.keys.get(keyName(tenant, key));
    if (stored) stored.isExpired = true;
    return passed();
  }

  taskGrowsOld({ tenant, task: name }: Arguments['taskGrowsOld']): Result {
    const task = this.task(tenant, name);
    if (task) task.isOld = true;
    return passed();
  }

  tombstoneGrowsOld({ tenant, task: name }: Arguments['tombstoneGrowsOld']): Result {
    const tombstone = this.state.tombstones.get(name);
    if (tombstone?.tenant === tenant) tombstone.isOld = true;
    return passed();
  }

  // ── What they share ──────────────────────────────────────────────────────────────────────────────────────────────

  /** A tenant sees its own tasks only. */
  task(tenant: string, name: string): ModelTask | undefined {
    const task = this.state.tasks.get(name);
    return task?.tenant === tenant ? task : undefined;
  }

  run(tenant: string, name: string): ModelRun | undefined {
    const run = this.state.runs.get(name);
    return run?.tenant === tenant ? run : undefined;
  }

  private letter(tenant: string, run: string): ModelLetter | undefined {
    const letter = this.state.letters.get(run);
    return letter?.tenant === tenant ? letter : undefined;
  }

  /** The turn that a key names. */
  private known(tenant: string, { name, gone }: Key): ModelKey | undefined {
    const key = this.state.keys.get(keyName(tenant, name));
    return key && !key.isExpired && key.task !== gone ? key : undefined;
  }

  /** Why a writer may not write; undefined: it may. The state of the run does not matter, only its attempt. */
  private fence({ tenant, task: name, run, attempt }: Attempt): string | undefined {
    const task = this.task(tenant, name);
    if (!task) return 'no such task';
    if (isTerminal(task)) return 'the task has ended';
    if (task.activeRun !== run) return 'another run is active';
    return task.attempt === attempt ? undefined : 'another attempt is current';
  }

  /** A parent may have children as long as the attempt that makes them owns it. */
  private parentOf({ tenant, task: name, run, attempt }: Attempt): ModelTask | undefined {
    const task = this.task(tenant, name);
    return task?.activeRun === run && task.attempt === attempt ? task : undefined;
  }

  /** A new run is put on the queue unless others of its tenant wait, or as many as may are in flight. */
  private slotFor(tenant: string, quota = NO_QUOTA): 'queue' | 'waits' | 'refused' {
    const waiting = this.runs.filter((run) => run.tenant === tenant && isWaiting(run));
    const { maxInFlight, maxWaiting } = quota;
    const isFree = maxInFlight === null || this.inFlight(tenant) < maxInFlight;
    if (isFree && !waiting.some(isDue)) return 'queue';
    return maxWaiting !== null && waiting.length >= maxWaiting ? 'refused' : 'waits';
  }

  private inFlight(tenant: string): number {
    return this.runs.filter((run) => run.tenant === tenant && isInFlight(run)).length;
  }

  /** Runs that are put on the queue, by name. One may use a reserved slot if no more than `reserveUpTo` of its tenant are in flight. */
  private enqueued(
    runs: readonly ModelRun[],
    inFlight: readonly ModelRun[],
    reserveUpTo = 1,
  ): { run: string }[] {
    const areFew = ({ tenant, name }: ModelRun): boolean =>
      inFlight.filter((other) => other.tenant === tenant && other.name !== name).length < reserveUpTo;
    return runs
      .map((run) => ({ run: run.name, attempt: run.attempt, mayUseReserved: areFew(run) }))
      .sort((a, b) => (a.run < b.run ? -1 : 1));
  }

  private addRun(
    tenant: string,
    name: string,
    task: string,
    start: number,
    hasSlot: boolean,
    retry = THREE_TIMES,
  ): ModelRun {
    const run: ModelRun = {
      tenant,
      name,
      task,
      state: 'queued',
      attempt: 0,
      crashes: 0,
      worker: null,
      lease: 'none',
      hasSlot,
      isStale: false,
      pause: null,
      start,
      waitsFor: [],
      error: null,
      lastError: null,
      retry,
      version: null,
      age: this.state.clock,
    };
    this.state.runs.set(name, run);
    return run;
  }

  /** Append an event. @returns its sequence */
  private say(task: ModelTask, says: string, attempt = 0): number {
    return task.log.push({ attempt, says });
  }

  private append(task: ModelTask, attempt: number, said: Said): void {
    if ('artifact' in said) {
      const { artifact: name, text, append } = said;
      const says = `${name}${append ? ' +' : ''} ${text}`;
      task.log.push({ attempt, says, artifact: { name, text, append } });
      return;
    }
    const { state, text } = said;
    const sequence = this.say(task, text === undefined ? state : `${state}: ${text}`, attempt);
    this.setState(task, state);
    if (text !== undefined) task.history.push([sequence, text]);
  }

  private setState(task: ModelTask, state: TaskState): void {
    Object.assign(task, { state, isOld: false });
  }

  /** End the active run of a task. */
  private finish(task: ModelTask, state: 'succeeded' | 'failed' | 'canceled', error?: string): void {
    const run = task.activeRun === null ? undefined : this.run(task.tenant, task.activeRun);
    if (run) Object.assign(run, { state, lease: 'none', error: error ?? null });
    task.activeRun = null;
  }

  private expired(): ModelRun[] {
    return this.runs.filter((run) => run.state === 'running' && run.lease === 'over' && !this.isSkipped(run));
  }

  /** A suspended run waits while a task has an active run and its time has not come. */
  private stillWaits({ tenant, waitsFor, pause }: ModelRun): boolean {
    const isActive = (name: string): boolean => (this.task(tenant, name)?.activeRun ?? null) !== null;
    return pause !== 'over' && waitsFor.some(isActive);
  }

  private queueAgain(run: ModelRun): void {
    Object.assign(run, { state: 'queued', hasSlot: false, waitsFor: [], pause: null });
  }

  private isSkipped({ name }: { name: string }): boolean {
    return this.skipped.has(name);
  }

  /** What a worker gets with a run. */
  private claimed(task: ModelTask, run: ModelRun, working: number | null, isAppended: boolean): Answer {
    const startLog = run.attempt === 1 ? task.log : task.log.slice(0, run.start);
    return {
      attempt: run.attempt,
      start: run.start,
      working: working === null ? null : { sequence: working, isAppended },
      says: task.history.find(([sequence]) => sequence === run.start)?.[1],
      head: isAppended ? task.log.length : 2,
      artifacts: fold(task.log),
      artifactsAtStart: fold(startLog),
      agent: task.agent,
      owner: task.owner,
      parent: task.parent,
      runsAlone: isAppended ? (run.lastError?.runsAlone ?? false) : false,
    };
  }

  /** All that is stored. */
  snapshot(): Snapshot {
    const { tasks, runs, keys, letters, aliases, tombstones } = this.state;
    return {
      tasks: mapValues(
        tasks,
        ({
          tenant,
          agent,
          owner,
          state,
          log,
          history,
          activeRun,
          attempt,
          parent,
          children,
          metadata,
          journal,
          wakesAt,
          wakesRun,
        }) => ({
          tenant,
          agent,
          owner,
          state,
          head: log.length,
          activeRun,
          attempt,
          parent,
          children,
          metadata,
          wakesAt,
          wakesRun,
          log: log.map(logLine),
          history: history.map(([sequence, text]) => `${sequence} ${text}`),
          // All bytes of its messages, events and journal are counted.
          uncountedBytes: 0,
          journal: journal
            .toSorted((a, b) => a.position - b.position)
            .map((entry) => `${entry.position} ${entry.run}@${entry.attempt} ${entry.value}`),
        }),
      ),
      runs: mapValues(runs, (run) => ({
        tenant: run.tenant,
        task: run.task,
        state: run.state,
        slot:
          run.state === 'queued'
            ? run.hasSlot
              ? run.isStale
                ? 'has one, long ago'
                : 'has one'
              : 'waits'
            : null,
        attempt: run.attempt,
        crashes: run.crashes,
        worker: run.worker,
        lease: run.lease,
        pause: isWaiting(run) || run.state === 'suspended' ? run.pause : null,
        start: run.start,
        waitsFor: run.state === 'suspended' ? run.waitsFor : null,
        error: run.error,
        lastError: run.lastError,
        version: run.version,
      })),
      keys: mapValues(keys, ({ task, sequence, content, isExpired }) => ({
        task,
        sequence,
        content,
        isExpired,
      })),
      letters: Object.fromEntries(letters),
      aliases: namesBy(
        [...aliases.values()].map(({ tenant, agent, client, task }) => [
          `${tenant}/${agent}/${client}`,
          task,
        ]),
      ),
      tombstones: mapValues(tombstones, ({ tenant, agent, owner, head, isPurged }) => ({
        tenant,
        agent,
        owner,
        head,
        isPurged,
      })),
    };
  }
}

/** Workers get a refusal without a reason, callers with it. */
const refused = (why: string, answer: Answer = 'refused'): Result => ({ outcome: `refused: ${why}`, answer });
const explained = (why: string): Result => refused(why, `refused: ${why}`);
/** A late attempt, while the run waits or another attempt executes it. */
const otherAttempt = (run: ModelRun | undefined): string =>
  run?.state === 'running' ? 'another attempt is running' : 'another attempt is current';
const passed = (): Result => ({ outcome: 'passed', answer: null });

const aliasName = ({
  tenant,
  agent,
  owner,
  client,
}: {
  tenant: string;
  agent: string;
  owner: string;
  client: string;
}): string => [tenant, agent, owner, client].join('/');

/** The names of each key, sorted. */
export function namesBy(pairs: readonly (readonly [key: string, name: string])[]): Record<string, string[]> {
  const names: Record<string, string[]> = {};
  for (const [key, name] of pairs) (names[key] ??= []).push(name);
  return mapValues(new Map(Object.entries(names)), (all) => all.sort());
}

/** The answer to a message that has made no task. */
const NOT_CREATED = { created: false, dispatched: false, claimed: false, mayUseReserved: false };

const isOnQueue = ({ state, hasSlot }: ModelRun): boolean => state === 'queued' && hasSlot;
const isWaiting = ({ state, hasSlot }: ModelRun): boolean => state === 'queued' && !hasSlot;
/** It takes one of the slots of its tenant. */
const isInFlight = (run: ModelRun): boolean => run.state === 'running' || isOnQueue(run);
const isSleepOver = ({ state, pause }: ModelRun): boolean => state === 'suspended' && pause === 'over';
const waitsForTasks = ({ state, task, waitsFor }: ModelRun): boolean =>
  state === 'suspended' && (waitsFor.length !== 1 || waitsFor[0] !== task);
const isDue = ({ pause }: ModelRun): boolean => pause === null || pause === 'over';
const byAge = (a: ModelRun, b: ModelRun): number => a.age - b.age;
const keyName = (tenant: string, key: string): string => `${tenant}/${key}`;

const backoffMs = ({ crashes, retry: { initialMs, factor, maxMs } }: ModelRun): number =>
  Math.min(maxMs, initialMs * factor ** crashes);
/** A pause that grows with each crash. After the first one there is none: another run may be to blame. */
const quarantineMs = ({ crashes }: ModelRun): number =>
  crashes === 0 ? 0 : Math.min(MAX_PAUSE_MS, 1000 * 4 ** (crashes - 1));
const pauseAfterCrash = (run: ModelRun): number => Math.max(backoffMs(run), quarantineMs(run));

const logLine = ({ attempt, says }: LogEvent, i: number): string => `${i + 1} @${attempt} ${says}`;

/** The texts of each artifact: a chunk without `append` replaces what was there. */
function fold(log: readonly LogEvent[]): Record<string, string[]> {
  const artifacts: Record<string, string[]> = {};
  for (const { artifact } of log) {
    if (!artifact) continue;
    const { name, text, append } = artifact;
    artifacts[name] = append ? [...(artifacts[name] ?? []), text] : [text];
  }
  return artifacts;
}

/** A new map as a record of what `map` makes of its values. */
const mapValues = <T, U>(all: ReadonlyMap<string, T>, map: (value: T) => U): Record<string, U> =>
  Object.fromEntries([...all].map(([name, value]) => [name, map(value)]));
