import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiAddress, Credentials } from './caller.js';
import { CODE_AGENTS, type Deployments, type Shape } from './deployments.js';
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
 * tasks, a task goes on with the code with which it began. Of the other one, a task goes on with the newest code, or is parked until a
 * release fits it. After the load all kinds of releases come in turn until every task has ended.
 */
export class CodeLoad {
  private readonly records: CodeRecord[] = [];
  private readonly driving = new Set<Promise<void>>();
  private readonly giveUp = new AbortController();
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
    setMaxListeners(0, this.giveUp.signal, this.stopping.signal);
  }

  /** Begins so many tasks, spread over the time, and deploys. Resolves when no more code comes, at the latest `patienceMs` after the load. */
  async run(tasks: number, lastsMs: number, patienceMs: number): Promise<void> {
    if (tasks === 0) return;
    const over = new AbortController();
    const loaded = this.begin(tasks, lastsMs).finally(() => over.abort());
    let pause = DEPLOY_MS;
    while (!over.signal.aborted) {
      await Promise.race([loaded, delay(pause)]);
      // On a busy machine a deploy takes long: tasks get as much time without one.
      pause = Math.max(DEPLOY_MS, await this.deploy());
    }
    // A busy machine needs longer than the patience for all of them.
    const last = performance.now() + patienceMs;
    for (let n = 0; this.driving.size > 0 && (n < MIN_LAST_DEPLOYS || performance.now() < last); n++) {
      pause = Math.max(LAST_DEPLOY_MS, await this.deploy());
      await Promise.race([Promise.all(this.driving), delay(pause)]);
    }
    this.giveUp.abort();
    await Promise.all(this.driving);
  }

  /** What has become of the tasks. */
  async outcome(): Promise<CodeOutcome> {
    const { effects } = await this.outside.counts();
    for (const record of this.records) {
      record.effects = effects.filter(({ task }) => task === wordsOf(record));
      if (record.taskId === undefined) continue;
      const task = await this.client.task(record.taskId, this.stopping.signal);
      record.stored = { state: task.state, text: answerOf(task) };
      record.ledger = await this.client.effects(record.taskId, this.stopping.signal);
    }
    return { records: this.records, received: effects.length, deploys: this.deploys };
  }

  stop(): void {
    this.giveUp.abort();
    this.stopping.abort();
  }

  /** Deploys the next release. Before the first one there are no such agents. @returns how long it took, in ms */
  async deploy(): Promise<number> {
    const started = performance.now();
    await this.deployments.deploy(SHAPES[this.deploys++ % SHAPES.length] ?? 'plain');
    return performance.now() - started;
  }

  private async begin(tasks: number, lastsMs: number): Promise<void> {
    for (let number = 0; number < tasks; number++) {
      const agent = CODE_AGENTS[number % CODE_AGENTS.length] ?? 'keeper';
      const record: CodeRecord = { number, agent, effects: [], ledger: [], parked: 0, deploys: 0 };
      this.records.push(record);
      const driving = this.drive(record)
        .catch((error: unknown) => {
          if (!this.giveUp.signal.aborted)
            record.fault = error instanceof Error ? error.message : String(error);
        })
        .finally(() => this.driving.delete(driving));
      this.driving.add(driving);
      await delay(lastsMs / tasks);
    }
  }

  /** Sends, answers the question, and looks until the task has ended. */
  private async drive(record: CodeRecord): Promise<void> {
    const { number, agent } = record;
    const signal = this.giveUp.signal;
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

/** The message of a task, which its effects carry. */
const wordsOf = ({ number, agent }: CodeRecord): string => `${agent} ${number}`;
