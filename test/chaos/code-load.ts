import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiAddress, Credentials } from './caller.js';
import { CODE_AGENTS, type Deployments, type Shape } from './deployments.js';
import { DrivenTasks } from './driven-tasks.js';
import type { CodeOutcome, CodeRecord } from './observations.js';
import type { Outside } from './outside.js';
import { answerOf, RETRY_MS, RetryingClient } from './retrying-client.js';

/** A person thinks for so long, while code is deployed. */
const THINKING_MS = 2_000;
/** Between two deploys, at least. */
const DEPLOY_MS = 6_000;
/** A release whose tasks do not end in this time has others before it: then comes the next one. */
const LAST_DEPLOY_MS = 15_000;
/** After the load: each kind of release twice. */
const MIN_LAST_DEPLOYS = 8;
const ENDED = new Set(['completed', 'failed', 'canceled', 'rejected']);
/** During the load: code that fits, code that parks tasks, and the one that mends it. */
const SHAPES: readonly Shape[] = ['plain', 'patched', 'checked', 'plain'];

/**
 * Tasks of two agents in code, while their code is deployed again and again: each deploy replaces all workers. Of the one that pins its
 * tasks, a task continues with the code with which it began. Of the other one, a task continues with the newest code, or is parked until a
 * release fits it. Between two deploys the files of the pinned one are overwritten below running workers. After the load all kinds of releases come in turn until every task has ended.
 */
export class CodeLoad {
  private readonly tasks = new DrivenTasks<CodeRecord>((record, signal) => this.drive(record, signal));
  private readonly stopping = new AbortController();
  private readonly client: RetryingClient;
  private deploys = 0;

  constructor(
    apis: () => Promise<readonly ApiAddress[]>,
    who: Credentials,
    private readonly deployments: Deployments,
    private readonly outside: Outside,
  ) {
    this.client = new RetryingClient(apis, who);
    setMaxListeners(0, this.stopping.signal);
  }

  /** Begins so many tasks, spread over the time, and deploys. Resolves when no more code comes, at the latest `patienceMs` after the load. */
  async run(tasks: number, lastsMs: number, patienceMs: number): Promise<void> {
    if (tasks === 0) return;
    const over = new AbortController();
    const loaded = this.tasks.begin(tasks, lastsMs, recordOf).finally(() => over.abort());
    let pause = DEPLOY_MS;
    while (!over.signal.aborted) {
      await Promise.race([loaded, delay(pause / 2)]);
      this.deployments.overwrite();
      await Promise.race([loaded, delay(pause / 2)]);
      // On a busy machine a deploy takes long: tasks get as much time without one.
      pause = Math.max(DEPLOY_MS, await this.deploy());
    }
    // A busy machine needs longer than the patience for all of them.
    const last = performance.now() + patienceMs;
    for (let n = 0; this.tasks.open > 0 && (n < MIN_LAST_DEPLOYS || performance.now() < last); n++) {
      pause = Math.max(LAST_DEPLOY_MS, await this.deploy());
      this.deployments.overwrite();
      await Promise.race([this.tasks.ended(), delay(pause)]);
    }
    this.tasks.stop();
    await this.tasks.ended();
  }

  /** What has become of the tasks. */
  async outcome(): Promise<CodeOutcome> {
    const { effects } = await this.outside.counts();
    const { records } = this.tasks;
    for (const record of records) {
      record.effects = effects.filter(({ task }) => task === wordsOf(record));
      if (record.taskId === undefined) continue;
      const task = await this.client.task(record.taskId, this.stopping.signal);
      record.stored = { state: task.state, text: answerOf(task) };
      record.ledger = await this.client.effects(record.taskId, this.stopping.signal);
    }
    return { records, received: effects.length, deploys: this.deploys };
  }

  stop(): void {
    this.tasks.stop();
    this.stopping.abort();
  }

  /** Deploys the next release. Before the first one there are no such agents. @returns how long it took, in ms */
  async deploy(): Promise<number> {
    const started = performance.now();
    await this.deployments.deploy(SHAPES[this.deploys++ % SHAPES.length] ?? 'plain');
    return performance.now() - started;
  }

  /** Sends, answers the question, and looks until the task has ended. */
  private async drive(record: CodeRecord, signal: AbortSignal): Promise<void> {
    const { number, agent } = record;
    const send = (messageId: string, text: string, taskId?: string) =>
      this.client.message(
        agent,
        { messageId, parts: [{ text }], ...(taskId !== undefined && { taskId }) },
        signal,
      );
    const begun = this.deploys;
    const taskId = await send(`code-${number}`, wordsOf(record));
    record.taskId = taskId;
    let isParked = false;
    let hasAnswered = false;
    for (;;) {
      const { state, parked } = await this.client.task(taskId, signal);
      record.deploys = this.deploys - begun;
      if (parked && !isParked) record.parked += 1;
      isParked = Boolean(parked);
      if (ENDED.has(state)) return void (record.isOver = true);
      if (state === 'input-required' && !hasAnswered) {
        await delay(THINKING_MS, undefined, { signal });
        await send(`code-${number}-more`, 'yes', taskId);
        hasAnswered = true;
      }
      await delay(RETRY_MS, undefined, { signal });
    }
  }
}

const recordOf = (number: number): CodeRecord => ({
  number,
  agent: CODE_AGENTS[number % CODE_AGENTS.length] ?? 'keeper',
  effects: [],
  ledger: [],
  parked: 0,
  deploys: 0,
});

/** The message of a task, which its effects carry. */
const wordsOf = ({ number, agent }: CodeRecord): string => `${agent} ${number}`;
