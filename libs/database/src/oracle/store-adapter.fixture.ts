import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import {
  type Artifact,
  ArtifactFold,
  type EventPayload,
  type RunRetry,
  TaskState as A2aState,
  taskStateToJSON,
} from '@baton/a2a';
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { QueryResultRow } from 'pg';
import type {
  Alias,
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
  Verb,
} from '../../../../test/oracle/operations.js';
import { explain, namesBy } from '../../../../test/oracle/task-model.js';
import type { OracleSubject } from '../../../../test/oracle/oracle.js';
import { TENANTS } from '../../../../test/oracle/operation-source.js';
import { LOG } from '../../../../test/support/log-sql.js';
import {
  type ClaimedRun,
  DeadLetterStore,
  DispatchStore,
  JournalStore,
  type NewAlias,
  type MessageKey,
  type NewEvent,
  ParentOverError,
  RetentionStore,
  type RunKey,
  type RunQuota,
  RunStore,
  type RunToEnqueue,
  type SweepCursor,
  TaskStore,
  TaskTreeStore,
  TooManyChildrenError,
  TooManyWaitingError,
} from '../index.js';
import type { Statement } from '../connection/database.js';
import {
  artifactChunk,
  beat,
  entry,
  newTask,
  sql,
  status,
  textMessage,
  type Stores,
} from '../stores.fixture.js';

/** No lease ends and no key expires by itself while the oracle runs. */
const LEASE_MS = 3_600_000;
const KEY_HOURS = 1;
const PROFILE = 'profile';
const STALE_MS = 60_000;
const RETENTION_DAYS = 30;
const LONG_AGO = `now() - interval '100 days'`;
/** Pauses and sleeps are moved to this time, so that they end only when the oracle says so. */
const FROZEN = `'2100-01-01'::timestamptz`;
const ROWS = 100;
/** How often it looks whether two operations wait for a row. */
const MAX_LOOKS = 30;
const WAITING_FOR_LOCKS = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
/** After these a run may wait for a time. */
const PAUSES: ReadonlySet<string> = new Set<Verb>(['reclaimExpired', 'postpone', 'suspend']);

const STATES: Record<TaskState, A2aState> = {
  submitted: A2aState.TASK_STATE_SUBMITTED,
  working: A2aState.TASK_STATE_WORKING,
  'input-required': A2aState.TASK_STATE_INPUT_REQUIRED,
  'auth-required': A2aState.TASK_STATE_AUTH_REQUIRED,
  completed: A2aState.TASK_STATE_COMPLETED,
  failed: A2aState.TASK_STATE_FAILED,
  rejected: A2aState.TASK_STATE_REJECTED,
  canceled: A2aState.TASK_STATE_CANCELED,
};
const nameOfState = (state: A2aState): string =>
  Object.entries(STATES).find(([, value]) => value === state)?.[0] ?? `state ${state}`;

const STATE_NAMES = new Map(Object.entries(STATES).map(([name, state]) => [taskStateToJSON(state), name]));

/** Executes the operations of the oracle on the real stores. No other file of the oracle calls them. */
export class StoreAdapter implements OracleSubject {
  /** The names of ids. */
  private readonly names: Map<string, string>;
  /** The artifacts of each writer. */
  private readonly writers: Map<string, ArtifactFold>;
  /** What was made for the workers of runs that were claimed at acceptance. */
  private readonly sent: Map<string, string>;
  private elsewhere: StoreAdapter | undefined;
  private readonly letters: DeadLetterStore;
  private readonly journal: JournalStore;
  private readonly retention: RetentionStore;
  private readonly tree: TaskTreeStore;
  private episode = 0;
  private begunAt = 0;
  private mayPause = false;
  /** Pauses that the operations before the last freeze asked for. */
  private readonly askedPauses: number[];
  private together = 0;

  constructor(
    private readonly stores: Stores,
    other?: StoreAdapter,
  ) {
    const { database } = stores;
    this.names = other?.names ?? new Map<string, string>();
    this.askedPauses = other?.askedPauses ?? [];
    this.sent = other?.sent ?? new Map<string, string>();
    this.writers = other?.writers ?? new Map<string, ArtifactFold>();
    this.letters = new DeadLetterStore(database);
    this.journal = new JournalStore(database, stores.runs);
    this.retention = new RetentionStore(database);
    this.tree = new TaskTreeStore(database);
  }

  /**
   * Two operations, each in a process of its own. A third transaction holds a row that both want, until both wait for it. So each of
   * them has begun before the other one changes anything.
   */
  async applyTogether(
    first: Operation,
    second: Operation,
    held: string | undefined,
  ): Promise<[Answer, Answer]> {
    const { database } = this.stores;
    this.elsewhere ??= new StoreAdapter(
      {
        ...this.stores,
        tasks: new TaskStore(database),
        runs: new RunStore(database),
        dispatch: new DispatchStore(database),
      },
      this,
    );
    const other = this.elsewhere;
    other.episode = this.episode;
    this.mayPause ||= PAUSES.has(second.verb);
    this.together += 1;
    // Who waits first comes first.
    const begin = (): Promise<[Answer, Answer]> => {
      if (this.together % 2 === 0) return Promise.all([this.apply(first), other.apply(second)]);
      const [late, early] = [other.apply(second), this.apply(first)];
      return Promise.all([early, late]);
    };
    if (held === undefined) return begin();
    let answers: Promise<[Answer, Answer]> | undefined;
    await database.inSystem(async (transaction) => {
      const table = this.together % 3 === 0 ? 'runs' : 'tasks';
      await transaction.query({ text: `SELECT FROM ${table} WHERE id = $1 FOR UPDATE` }, [this.id(held)]);
      const over = new AbortController();
      answers = begin().finally(() => over.abort());
      answers.catch(() => undefined);
      for (let tries = 0; tries < MAX_LOOKS && !over.signal.aborted; tries++) {
        const waiting = await sql(this.stores, WAITING_FOR_LOCKS);
        if (waiting.length === 2) break;
      }
    });
    return answers!;
  }

  async reset(): Promise<void> {
    this.episode += 1;
    this.names.clear();
    this.writers.clear();
    const tables = [
      'task_aliases',
      'tasks',
      'runs',
      'task_events',
      'task_messages',
      'message_keys',
      'dead_letters',
      'task_tombstones',
      'turn_journal',
      'artifact_starts',
    ];
    await Promise.all(tables.map((table) => sql(this.stores, `DELETE FROM ${table}`)));
  }

  async apply(operation: Operation): Promise<Answer> {
    this.begunAt = performance.now();
    this.mayPause ||= PAUSES.has(operation.verb);
    const execute = this[operation.verb] as (args: Operation) => Promise<Answer>;
    return execute.call(this, operation);
  }

  // ── What callers do ──────────────────────────────────────────────────────────────────────────────────────────────

  async createTask(input: Arguments['createTask']): Promise<Answer> {
    const { tenant, agent, owner, says, key, quota, retry, claimFor, alias, child } = input;
    const id = this.id(input.task);
    const made = newTask({ tenantId: this.id(tenant), agentId: agent });
    const contextId = this.contextOf(input.task);
    const task = { ...made.task, id, contextId, history: [textMessage(says, { taskId: id })] };
    const parent = child && {
      parent: this.key(child.parent),
      rootTaskId: this.id(child.root),
      maxTasks: child.maxTasks,
    };
    try {
      const created = await this.stores.tasks.create({
        ...made,
        task,
        runId: this.id(`${input.task}/1`),
        owner,
        ...(key && { key: this.messageKey(key) }),
        ...(quota && { quota: quotaOf(quota) }),
        ...(retry && { retry: retryOf(retry) }),
        ...(parent && { child: parent }),
        ...(alias && { alias: this.aliasOf(alias) }),
        ...(claimFor !== undefined && { claimFor: { workerId: claimFor, leaseMs: LEASE_MS } }),
      });
      const { taskId, content, claimed, ...rest } = created;
      if (claimed !== undefined) this.sent.set(`${input.task}/1`, claimed);
      return {
        task: this.name(taskId),
        ...rest,
        claimed: claimed !== undefined,
        content: content && content.toString(),
      };
    } catch (error) {
      return refusalOf(error);
    }
  }

  async continueTask(input: Arguments['continueTask']): Promise<Answer> {
    const { tenant, task, agent, run, says, key, quota, retry } = input;
    try {
      const result = await this.stores.tasks.continue({
        tenantId: this.id(tenant),
        taskId: this.id(task),
        agentId: agent,
        runId: this.id(run),
        message: textMessage(says),
        extensions: [],
        ...(key && { key: this.messageKey(key) }),
        ...(quota && { quota: quotaOf(quota) }),
        ...(retry && { retry: retryOf(retry) }),
      });
      if (result.ok) {
        const { sequence, dispatched, mayUseReserved } = result;
        return { sequence, dispatched, mayUseReserved };
      }
      if (result.reason === 'repeated') {
        const { taskId, content } = result.earlier;
        return { repeated: this.name(taskId), content: content && content.toString() };
      }
      return REASONS[result.reason];
    } catch (error) {
      return refusalOf(error);
    }
  }

  async cancelTask({ tenant, task, agent, owner, metadata }: Arguments['cancelTask']): Promise<Answer> {
    const result = await this.stores.tasks.cancel(this.id(tenant), agent, this.id(task), {
      metadata,
      own: owner === undefined ? undefined : { owner, unowned: false },
    });
    if (!result.ok) return REASONS[result.reason];
    const { event, runId, parentTaskId, hasChildren } = result;
    return {
      sequence: event.sequence,
      run: runId && this.runName(runId),
      parent: parentTaskId && this.name(parentTaskId),
      hasChildren,
    };
  }

  async readTask({ tenant, task }: Arguments['readTask']): Promise<Answer> {
    const stored = await this.stores.tasks.get(this.id(tenant), this.id(task));
    if (!stored) return null;
    const { history, artifacts, metadata, status: latest } = stored.task;
    return {
      agent: stored.agentId,
      owner: stored.owner,
      state: latest && nameOfState(latest.state),
      head: stored.sequence,
      history: history.map(textOf),
      artifacts: artifactTexts(artifacts),
      metadata: metadata ?? {},
    };
  }

  async readEvents({ tenant, task, after, limit }: Arguments['readEvents']): Promise<Answer> {
    const events = await this.stores.tasks.readEvents(this.id(tenant), this.id(task), after, limit);
    const ofTask = ({ taskId, contextId }: { taskId: string; contextId: string }): boolean =>
      taskId === this.id(task) && contextId === this.contextOf(task);
    return events.map(({ sequence, attempt, payload }) => {
      const isOfTask = payload.$case === 'task' || ofTask(payload.value);
      return `${sequence} @${attempt} ${saidBy(payload)}${isOfTask ? '' : ' of another task'}`;
    });
  }

  async findKey({ tenant, key }: Arguments['findKey']): Promise<Answer> {
    const turn = await this.stores.tasks.earlierTurn(this.id(tenant), this.messageKey(key));
    return turn ? { task: this.name(turn.taskId), content: turn.content && turn.content.toString() } : null;
  }

  async findAlias({ tenant, agent, owner, client }: Arguments['findAlias']): Promise<Answer> {
    const own = { owner, unowned: false };
    const tenantId = this.id(tenant);
    const found = await this.stores.tasks.findAlias({
      tenantId,
      agentId: agent,
      profile: PROFILE,
      clientId: client,
      own,
    });
    return found ? { task: this.name(found.taskId), agent: found.agentId } : null;
  }

  async reserveRedelivery({ tenant, run, task, again }: Arguments['reserveRedelivery']): Promise<Answer> {
    const letter = await this.letters.reserve(this.id(tenant), this.id(run), this.id(task), again);
    if (!letter) return null;
    const { redeliveredTaskId, redeliveredAt } = letter;
    return { task: redeliveredTaskId && this.name(redeliveredTaskId), isRedelivered: redeliveredAt !== null };
  }

  async confirmRedelivery({ tenant, run, task }: Arguments['confirmRedelivery']): Promise<Answer> {
    await this.letters.confirm(this.id(tenant), this.id(run), this.id(task), PLATFORM_ACTOR);
    return null;
  }

  // ── What workers do ──────────────────────────────────────────────────────────────────────────────────────────────

  async claimRun({ tenant, run, worker, again }: Arguments['claimRun']): Promise<Answer> {
    return this.claimed(
      run,
      await this.stores.runs.claim(this.id(tenant), this.id(run), worker, LEASE_MS, again),
    );
  }

  /** By a read. What its worker may have been sent at acceptance must be the same. */
  async pickUpRun({ tenant, run, worker }: Arguments['pickUpRun']): Promise<Answer> {
    const { runs } = this.stores;
    const read = this.claimed(run, await runs.readEagerRun(this.id(tenant), this.id(run), worker, 1000));
    const sent = this.sent.get(run);
    if (read === 'refused' || sent === undefined) return read;
    const started = this.claimed(run, runs.eagerRunFrom(sent));
    return isDeepStrictEqual(read, started) ? read : { read, started };
  }

  async appendEvents({ writer, head, events, metadata }: Arguments['appendEvents']): Promise<Answer> {
    const said = this.events(writer, events);
    const batch = {
      afterSequence: head,
      contextId: this.contextOf(writer.task),
      events: said.events,
      ...(metadata && { metadata }),
    };
    const result = await this.stores.runs.append(this.key(writer), batch);
    if (result.ok) this.writers.set(nameOfWriter(writer), said.fold);
    return result.ok ? { first: result.firstSequence } : 'refused';
  }

  async endTurn(input: Arguments['endTurn']): Promise<Answer> {
    const { writer, head, events, state, error, folds, wakeInMs } = input;
    const key = this.key(writer);
    const said = this.events(writer, [...events, { state }]);
    const artifacts = folds ? said.fold.artifacts() : undefined;
    const result = await this.stores.runs.append(key, {
      afterSequence: head,
      contextId: this.contextOf(writer.task),
      events: said.events,
      end: {
        state: STATES[state],
        outcome: null,
        artifacts,
        wakeInMs,
        ...(error !== undefined && { error }),
      },
    });
    return result.ok ? { first: result.firstSequence, hasChildren: result.hasChildren } : 'refused';
  }

  async writeJournal({ writer, position, value }: Arguments['writeJournal']): Promise<Answer> {
    return this.journal.append(this.key(writer), position, value);
  }

  async noteVersion({ writer, version }: Arguments['noteVersion']): Promise<Answer> {
    return this.stores.runs.noteAgentVersion(this.key(writer), { version });
  }

  async noteError({ writer, crash }: Arguments['noteError']): Promise<Answer> {
    await this.stores.runs.noteError(this.key(writer), errorOf(writer, crash, false));
    return null;
  }

  async giveUp({ writer, crash, runsAlone }: Arguments['giveUp']): Promise<Answer> {
    await this.stores.runs.giveUp(this.key(writer), errorOf(writer, crash, runsAlone));
    return null;
  }

  async heartbeat({ worker, leases }: Arguments['heartbeat']): Promise<Answer> {
    const lost = await beat(
      this.stores,
      leases.map((lease) => this.key(lease)),
      worker,
      LEASE_MS,
    );
    return lost.map((id) => this.runName(id)).sort();
  }

  async returnToQueue({ writer, reserveUpTo }: Arguments['returnToQueue']): Promise<Answer> {
    const returned = await this.stores.runs.returnToQueue(this.key(writer), reserveUpTo);
    return returned ? this.enqueued([returned]) : 'refused';
  }

  async suspend({ writer, waitsFor, forMs }: Arguments['suspend']): Promise<Answer> {
    if (forMs !== undefined) this.askedPauses.push(forMs);
    return this.tree.suspend(
      this.key(writer),
      waitsFor.map((task) => this.id(task)),
      forMs,
    );
  }

  async wake({ tenant, task }: Arguments['wake']): Promise<Answer> {
    return this.tree.wake(this.id(tenant), this.id(task));
  }

  async postpone({ tenant, run, forMs }: Arguments['postpone']): Promise<Answer> {
    this.askedPauses.push(forMs);
    await this.stores.runs.postpone(this.id(tenant), this.id(run), forMs);
    return null;
  }

  async isSuspect({ tenant, run }: Arguments['isSuspect']): Promise<Answer> {
    return this.stores.runs.isSuspect(this.id(tenant), this.id(run));
  }

  async openChildren({ tenant, task }: Arguments['openChildren']): Promise<Answer> {
    const children = await this.tree.openChildren(this.id(tenant), this.id(task));
    return children.map((id) => this.name(id)).sort();
  }

  async dispatch({ grants, capacity, reserve }: Arguments['dispatch']): Promise<Answer> {
    const wanted = grants.map(({ tenant, ...grant }) => ({ tenantId: this.id(tenant), ...grant }));
    return (await this.stores.dispatch.dispatch(wanted, capacity, reserve)).map(this.runToEnqueue);
  }

  // ── What sweeps do ───────────────────────────────────────────────────────────────────────────────────────────────

  async findWork(_: object): Promise<Answer> {
    const found = await this.stores.runs.findWork(STALE_MS);
    const { expiredRuns, staleQueuedRuns, waitingRuns, dueSleeps, waitsForTasks } = found;
    const { unansweredTasks, openChildren } = found;
    return {
      expiredRuns,
      staleQueuedRuns,
      waitingRuns,
      dueSleeps,
      waitsForTasks,
      unansweredTasks,
      openChildren,
    };
  }

  async reclaimExpired(_: object): Promise<Answer> {
    const { at } = await this.stores.runs.findWork(STALE_MS);
    return this.enqueued(await this.stores.runs.reclaimExpired(ROWS, at));
  }

  async failPoisoned(_: object): Promise<Answer> {
    const { at } = await this.stores.runs.findWork(STALE_MS);
    const failed = await this.stores.runs.failPoisoned(ROWS, at, ({ crashCount, lastCrash }) =>
      explain(crashCount, lastCrash),
    );
    return failed
      .map(
        ({ runId, attempt, event }) => `${this.runName(runId)} attempt ${attempt}, event ${event.sequence}`,
      )
      .sort();
  }

  async takeStaleQueued(_: object): Promise<Answer> {
    return this.enqueued(await this.stores.runs.takeStaleQueued(STALE_MS, ROWS));
  }

  async wakeDue(_: object): Promise<Answer> {
    return this.tree.wakeDue(ROWS);
  }

  /** In slices of two. */
  async wakeAll(_: object): Promise<Answer> {
    let woken = 0;
    let cursor: SweepCursor;
    do {
      const slice = await this.tree.wakeNext(cursor, 2);
      woken += slice.woken;
      cursor = slice.next;
    } while (cursor);
    return woken;
  }

  async wakeAsking(_: object): Promise<Answer> {
    const woken = await this.stores.tasks.wakeAsking(ROWS);
    return woken.map(({ taskId, event }) => `${this.name(taskId)}, event ${event.sequence}`).sort();
  }

  async abandonedChildren(_: object): Promise<Answer> {
    const found: string[] = [];
    let cursor: SweepCursor;
    do {
      const slice = await this.tree.abandonedChildren(cursor, 2);
      found.push(...slice.children.map(({ taskId }) => this.name(taskId)));
      cursor = slice.next;
    } while (cursor);
    return found.sort();
  }

  async expireTasks(_: object): Promise<Answer> {
    const retentions = TENANTS.map((tenant) => ({ tenantId: this.id(tenant), days: RETENTION_DAYS }));
    return (await this.retention.expire(retentions, ROWS)).tasks;
  }

  /** In slices of three events. */
  async purgeLogs(_: object): Promise<Answer> {
    const sum = { events: 0, messages: 0, runs: 0 };
    for (;;) {
      const { events = 0, messages = 0, runs = 0 } = await this.retention.purge(3);
      if (events === 0) return sum;
      sum.events += events;
      sum.messages += messages;
      sum.runs += runs;
    }
  }

  async forgetTombstones(_: object): Promise<Answer> {
    return (await this.retention.forget(RETENTION_DAYS, ROWS)).tombstones;
  }

  async dropKeys(_: object): Promise<Answer> {
    return (await this.retention.dropKeys(ROWS)).keys;
  }

  // ── What time does: no test can move the clock of Postgres ────────────────────────────────────────────────────────

  async leaseRunsOut({ run }: Arguments['leaseRunsOut']): Promise<Answer> {
    return this.change(
      `UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = '${this.id(run)}' AND state = 'running'`,
    );
  }

  async pauseEnds({ run }: Arguments['pauseEnds']): Promise<Answer> {
    return this.change(
      `UPDATE runs SET not_before = ${LONG_AGO} WHERE id = '${this.id(run)}' AND not_before IS NOT NULL`,
    );
  }

  async answerTimeEnds({ task }: Arguments['answerTimeEnds']): Promise<Answer> {
    return this.change(
      `UPDATE tasks SET wakes_at = ${LONG_AGO} WHERE id = '${this.id(task)}' AND wakes_at IS NOT NULL`,
    );
  }

  async queueLoses({ run }: Arguments['queueLoses']): Promise<Answer> {
    return this.change(
      `UPDATE runs SET enqueued_at = ${LONG_AGO} WHERE id = '${this.id(run)}' AND state = 'queued' AND enqueued_at IS NOT NULL`,
    );
  }

  async keyExpires({ tenant, key }: Arguments['keyExpires']): Promise<Answer> {
    return this.change(
      `UPDATE message_keys SET expires_at = ${LONG_AGO} WHERE tenant_id = '${this.id(tenant)}' AND key = '\\x${hash(key).toString('hex')}'`,
    );
  }

  async taskGrowsOld({ task }: Arguments['taskGrowsOld']): Promise<Answer> {
    return this.change(`UPDATE tasks SET status_at = ${LONG_AGO} WHERE id = '${this.id(task)}'`);
  }

  async tombstoneGrowsOld({ task }: Arguments['tombstoneGrowsOld']): Promise<Answer> {
    return this.change(
      `UPDATE task_tombstones SET deleted_at = ${LONG_AGO} WHERE task_id = '${this.id(task)}'`,
    );
  }

  private async change(statement: string): Promise<null> {
    await sql(this.stores, statement);
    return null;
  }

  // ── What is stored ───────────────────────────────────────────────────────────────────────────────────────────────

  async snapshot(): Promise<Snapshot> {
    await this.freezePauses();
    const [stored] = await this.stores.database.systemQuery<StoredRows>(STORED, []);
    if (!stored) throw new Error('Postgres has no answer');
    const { tasks, runs, keys, letters, aliases, tombstones } = stored;
    const entries = <T>(rows: T[] | null, of: (row: T) => [string, object]): Record<string, unknown> =>
      Object.fromEntries((rows ?? []).map(of));
    return {
      tasks: entries(
        tasks,
        ({ id, tenant, state, active_run, wakes_run, parent, metadata, log, history, journal, ...row }) => [
          this.name(id),
          {
            ...row,
            tenant: this.name(tenant),
            state: nameOfState(state),
            activeRun: active_run && this.runName(active_run),
            wakesRun: wakes_run && this.runName(wakes_run),
            parent: parent && this.name(parent),
            metadata: metadata ?? {},
            log: (log ?? []).map(({ n, attempt, payload }) => `${n} @${attempt} ${saidByJson(payload)}`),
            history: (history ?? []).map(({ n, message }) => `${n} ${message.parts[0]?.text ?? ''}`),
            journal: (journal ?? []).map(
              ({ n, run, attempt, value }) => `${n} ${this.runName(run)}@${attempt} ${value}`,
            ),
          },
        ],
      ),
      runs: entries(runs, ({ id, tenant, task, waits_for, detail, ...row }) => [
        this.runName(id),
        {
          ...row,
          tenant: this.name(tenant),
          task: this.name(task),
          waitsFor: row.state === 'suspended' ? (waits_for ?? []).map((one) => this.name(one)) : null,
          lastError: detail && {
            attempt: detail.attempt,
            crash: detail.crash ?? null,
            runsAlone: detail.runsAlone ?? false,
          },
        },
      ]),
      keys: entries(keys, ({ tenant, key, task, content, ...row }) => [
        `${this.name(tenant)}/${this.names.get(key) ?? key}`,
        { ...row, task: this.name(task), content: content && Buffer.from(content, 'hex').toString() },
      ]),
      letters: entries(letters, ({ run, tenant, task, redelivery, ...row }) => [
        this.runName(run),
        {
          ...row,
          tenant: this.name(tenant),
          task: this.name(task),
          redelivery: redelivery && this.name(redelivery),
        },
      ]),
      aliases: namesBy(
        (aliases ?? []).map(({ tenant, agent, client, task }) => [
          `${this.name(tenant)}/${agent}/${client}`,
          this.name(task),
        ]),
      ),
      tombstones: entries(tombstones, ({ task, tenant, ...row }) => [
        this.name(task),
        { ...row, tenant: this.name(tenant) },
      ]),
    };
  }

  /** Of two runs, the older one. */
  async olderOf(one: string, other: string): Promise<string | undefined> {
    const ids = [one, other].map((name) => `'${this.id(name)}'`).join();
    const rows = (await sql(
      this.stores,
      `SELECT id FROM runs WHERE id IN (${ids}) ORDER BY created_at, id`,
    )) as { id: string }[];
    return rows.length === 2 ? this.runName(rows[0]!.id) : undefined;
  }

  /** A pause has gone on since the operation began: rounds it up to the pause that it was. */
  private async freezePauses(): Promise<void> {
    if (!this.mayPause) return;
    this.mayPause = false;
    const paused = (await sql(
      this.stores,
      `SELECT id, extract(epoch FROM not_before - clock_timestamp())::float8 * 1000 AS left FROM runs
       WHERE not_before < ${FROZEN} AND not_before > now() - interval '1 day'`,
    )) as { id: string; left: number }[];
    const took = performance.now() - this.begunAt + 10;
    const asked = this.askedPauses.splice(0);
    for (const { id, left } of paused) {
      // On a busy machine an operation takes longer than a second, so that a pause may have been one of two.
      const second = asked.find((ms) => left <= ms && ms - left <= took) ?? Math.ceil(left / 1000) * 1000;
      const pause = second - left <= took ? second : Math.round(left);
      await sql(
        this.stores,
        `UPDATE runs SET not_before = ${FROZEN} + interval '${pause} ms' WHERE id = '${id}'`,
      );
    }
  }

  // ── Names and values ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Every episode has its own ids. The first run of a task has the id of the task. */
  id(name: string): string {
    const short = name.replace(/\/1$/, '');
    const hex = hash(`${this.episode} ${short}`).toString('hex');
    const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
    this.names.set(id, short);
    return id;
  }

  /** An id that was made by others. */
  learn(id: string, name: string): void {
    this.names.set(id, name);
  }

  private name(id: string): string {
    return this.names.get(id) ?? `unknown ${id}`;
  }

  private runName(id: string): string {
    const name = this.name(id);
    return name.includes('/') ? name : `${name}/1`;
  }

  private key({ tenant, task, run, attempt }: Attempt): RunKey {
    return { tenantId: this.id(tenant), taskId: this.id(task), runId: this.id(run), attempt };
  }

  contextOf(task: string): string {
    return this.id(`context of ${task}`);
  }

  private aliasOf({ client, previous }: Alias): NewAlias {
    return {
      profile: PROFILE,
      clientId: client,
      ...(previous !== undefined && { previousTaskId: this.id(previous) }),
    };
  }

  messageKey({ name, content, gone }: Key): MessageKey {
    const bytes = hash(name);
    this.names.set(bytes.toString('hex'), name);
    return {
      hash: bytes,
      content: content === null ? null : Buffer.from(content),
      hours: KEY_HOURS,
      ...(gone !== undefined && { goneTaskId: this.id(gone) }),
    };
  }

  private readonly runToEnqueue = ({ runId, attempt, mayUseReserved }: RunToEnqueue) => ({
    run: this.runName(runId),
    attempt,
    mayUseReserved,
  });

  /** By name: the order of these has no meaning. */
  private enqueued(runs: readonly RunToEnqueue[]): Answer {
    return runs.map(this.runToEnqueue).sort((a, b) => (a.run < b.run ? -1 : 1));
  }

  private claimed(run: string, claim: ClaimedRun | undefined): Answer {
    if (!claim) return 'refused';
    const { snapshot, workingEvent } = claim;
    const writer = nameOfWriter({ run, attempt: claim.attempt });
    this.writers.set(writer, new ArtifactFold(snapshot.task.artifacts));
    return {
      attempt: claim.attempt,
      start: claim.startSequence,
      working: workingEvent && { sequence: workingEvent.sequence, isAppended: workingEvent.isAppended },
      says: textOf(claim.message),
      head: snapshot.sequence,
      artifacts: artifactTexts(snapshot.task.artifacts),
      artifactsAtStart: artifactTexts(claim.artifactsAtStart),
      agent: claim.agentId,
      owner: claim.owner,
      parent: claim.parentTaskId === null ? null : this.name(claim.parentTaskId),
      runsAlone: claim.runsAlone,
    };
  }

  /** The events as a writer appends them, and the artifacts after them. The writer marks new artifacts. */
  private events(writer: Attempt, said: readonly Said[]): { events: NewEvent[]; fold: ArtifactFold } {
    const key = this.key(writer);
    const fold = new ArtifactFold(this.writers.get(nameOfWriter(writer))?.artifacts());
    const events = said.map((one) => {
      if ('state' in one) {
        return this.inContext(
          writer,
          status(key, STATES[one.state], one.text === undefined ? undefined : textMessage(one.text)),
        );
      }
      const isFirst = !fold.artifacts().some(({ artifactId }) => artifactId === one.artifact);
      const event = this.inContext(writer, artifactChunk(key, one.artifact, one.text, one.append));
      fold.apply(event.payload);
      return { ...event, isFirst };
    });
    return { events, fold };
  }

  /** With the ids of its task, as every event has them. */
  private inContext({ task }: Attempt, { payload }: NewEvent): NewEvent {
    if (payload.$case !== 'task') payload.value.contextId = this.contextOf(task);
    return entry(payload);
  }
}

const nameOfWriter = ({ run, attempt }: Pick<Attempt, 'run' | 'attempt'>): string => `${run}@${attempt}`;
const hash = (text: string): Buffer => createHash('sha256').update(text).digest();

const REASONS = {
  'not-found': 'refused: no such task',
  terminal: 'refused: the task has ended',
  busy: 'refused: the task is busy',
  late: 'refused: the time for an answer is over',
};

/** @throws what is not a refusal */
function refusalOf(error: unknown): Answer {
  if (error instanceof TooManyWaitingError) return 'refused: too many runs wait';
  if (error instanceof ParentOverError) return 'refused: the parent is over';
  if (error instanceof TooManyChildrenError) return 'refused: too many children';
  throw error;
}

const quotaOf = (quota: Quota): RunQuota => quota;
const retryOf = ({ maxAttempts, initialMs, factor, maxMs }: Retry): RunRetry => ({
  maxAttempts,
  backoff: { initialMs, factor, maxMs },
});
const errorOf = ({ attempt }: Attempt, crash: string | undefined, runsAlone: boolean) => ({
  attempt,
  at: '',
  name: 'Error',
  message: '',
  ...(crash !== undefined && { crash }),
  ...(runsAlone && { runsAlone }),
});

const textOf = ({ parts }: { parts: Artifact['parts'] }): string => String(parts[0]?.content?.value);
const artifactTexts = (artifacts: readonly Artifact[]): Record<string, string[]> =>
  Object.fromEntries(
    artifacts.map(({ artifactId, parts }) => [
      artifactId,
      parts.map(({ content }) => String(content?.value)),
    ]),
  );

/** An event in the words of the model. */
function saidBy(payload: EventPayload): string {
  if (payload.$case === 'task') return 'task';
  if (payload.$case === 'statusUpdate') {
    const { state, message } = payload.value.status!;
    return nameOfState(state) + (message ? `: ${textOf(message)}` : '');
  }
  const { artifact, append } = payload.value;
  return `${artifact?.artifactId}${append ? ' +' : ''} ${artifact ? textOf(artifact) : ''}`;
}

/** The same of a stored event. Parsed by hand: the oracle reads each event many times. */
function saidByJson({ statusUpdate, artifactUpdate }: StoredEvent): string {
  if (statusUpdate) {
    const { state, message } = statusUpdate.status;
    return (STATE_NAMES.get(state) ?? state) + (message ? `: ${message.parts[0]?.text}` : '');
  }
  if (!artifactUpdate) return 'task';
  const { artifact, append } = artifactUpdate;
  return `${artifact.artifactId}${append ? ' +' : ''} ${artifact.parts[0]?.text}`;
}

interface StoredEvent {
  statusUpdate?: { status: { state: string; message?: StoredMessage } };
  artifactUpdate?: { artifact: StoredMessage & { artifactId: string }; append?: boolean };
}
interface StoredMessage {
  parts: { text?: string }[];
}

interface StoredRows extends QueryResultRow {
  tasks:
    | {
        id: string;
        tenant: string;
        state: A2aState;
        active_run: string | null;
        wakes_run: string | null;
        parent: string | null;
        metadata: object | null;
        log: { n: number; attempt: number; payload: StoredEvent }[] | null;
        history: { n: number; message: StoredMessage }[] | null;
        journal: { n: number; run: string; attempt: number; value: string }[] | null;
      }[]
    | null;
  runs:
    | {
        id: string;
        tenant: string;
        task: string;
        state: string;
        waits_for: string[] | null;
        detail: { attempt: number; crash?: string; runsAlone?: boolean } | null;
      }[]
    | null;
  keys: { tenant: string; key: string; task: string; content: string | null }[] | null;
  letters: { run: string; tenant: string; task: string; redelivery: string | null }[] | null;
  aliases: { tenant: string; agent: string; client: string; task: string }[] | null;
  tombstones: { task: string; tenant: string }[] | null;
}

const rowsOf = (name: string, select: string): string =>
  `(SELECT json_agg(to_json(r)) FROM (${select}) r) AS ${name}`;
const ofTask = `tenant_id = t.tenant_id AND task_id = t.id`;

/** All that is stored of tasks and runs, as one row. The log of a task that was deleted is not seen by readers. */
const STORED: Statement = {
  name: 'oracle-stored',
  text: `SELECT ${[
    rowsOf(
      'tasks',
      `SELECT t.id, t.tenant_id AS tenant, t.agent_id AS agent, t.owner, t.state, t.last_sequence AS head, t.active_run_id AS active_run,
       CASE WHEN t.wakes_at < now() THEN 'over' WHEN t.wakes_at IS NOT NULL THEN 'later' END AS "wakesAt", t.wakes_run_id AS wakes_run,
       t.attempt, t.parent_task_id AS parent, t.child_tasks AS children, t.metadata,
       t.stored_bytes + CASE WHEN t.active_run_id IS NULL THEN 0 ELSE t.open_bytes END
         - (SELECT coalesce(sum(octet_length(m.message::text)), 0) FROM task_messages m JOIN runs r
            ON r.tenant_id = m.tenant_id AND r.task_id = m.task_id AND r.start_sequence = m.sequence WHERE m.${ofTask.replace(' AND ', ' AND m.')})
         - (SELECT coalesce(sum(bytes), 0) FROM task_events WHERE ${ofTask})
         - (SELECT coalesce(sum(octet_length(value::text)), 0) FROM turn_journal WHERE ${ofTask}) AS "uncountedBytes",
       (SELECT json_agg(json_build_object('n', sequence, 'attempt', attempt, 'payload', payload) ORDER BY sequence)
        FROM ${LOG} l WHERE ${ofTask}) AS log,
       (SELECT json_agg(json_build_object('n', sequence, 'message', message) ORDER BY sequence)
        FROM task_messages WHERE ${ofTask}) AS history,
       (SELECT json_agg(json_build_object('n', position, 'run', run_id, 'attempt', attempt, 'value', value) ORDER BY position)
        FROM turn_journal WHERE ${ofTask}) AS journal
     FROM tasks t`,
    ),
    rowsOf(
      'runs',
      `SELECT id, tenant_id AS tenant, task_id AS task, state, attempt, deaths AS crashes, worker_id AS worker, start_sequence AS start,
       error, error_detail AS detail, waits_for, agent_version AS version,
       CASE WHEN state <> 'queued' THEN NULL WHEN enqueued_at IS NULL THEN 'waits'
         WHEN enqueued_at < now() - interval '1 day' THEN 'has one, long ago' ELSE 'has one' END AS slot,
       CASE WHEN lease_expires_at IS NULL THEN 'none' WHEN lease_expires_at > clock_timestamp() THEN 'lasts' ELSE 'over' END AS lease,
       CASE WHEN not_before IS NULL OR NOT (state = 'suspended' OR state = 'queued' AND enqueued_at IS NULL) THEN NULL
         WHEN not_before < now() THEN to_json('over'::text)
         ELSE to_json((extract(epoch FROM not_before - ${FROZEN}) * 1000)::int) END AS pause
     FROM runs`,
    ),
    rowsOf(
      'keys',
      `SELECT tenant_id AS tenant, encode(key, 'hex') AS key, task_id AS task, sequence, encode(content, 'hex') AS content,
       expires_at <= now() AS "isExpired" FROM message_keys`,
    ),
    rowsOf(
      'letters',
      `SELECT run_id AS run, tenant_id AS tenant, task_id AS task, agent_id AS agent, attempts, reason,
       redelivered_task_id AS redelivery, redelivered_at IS NOT NULL AS "isRedelivered" FROM dead_letters`,
    ),
    rowsOf(
      'aliases',
      'SELECT tenant_id AS tenant, agent_id AS agent, client_id AS client, task_id AS task FROM task_aliases',
    ),
    rowsOf(
      'tombstones',
      `SELECT task_id AS task, tenant_id AS tenant, agent_id AS agent, owner, last_sequence AS head,
       purged_to >= last_sequence AS "isPurged" FROM task_tombstones`,
    ),
  ].join(', ')}`,
};
