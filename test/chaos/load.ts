import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Caller, type Credentials, now, type Witness } from './caller.js';
import type { Cluster } from './cluster.js';
import type { ForeignAsk, OddAnswer, TaskRecord } from './observations.js';
import type { Random } from './random.js';
import { Scenario, type Surroundings } from './scenario.js';
import { messageIdOf, planBurstTask, planTask, type TaskPlan } from './task-plan.js';

const NOT_FOUND = -32001;
/** How often a tenant asks for another's task. */
const FOREIGN_ASK_MS = 500;

/** All callers of a run: each task is driven by one, and at most so many at once. */
export class Load implements Witness {
  readonly records: TaskRecord[] = [];
  readonly oddAnswers: OddAnswer[] = [];
  readonly foreignAsks: ForeignAsk[] = [];
  /** Requests of one tenant for another's task. */
  foreignAsked = 0;
  private readonly giveUp = new AbortController();
  private readonly burstTasks: Promise<void>[] = [];
  private bursts = 0;
  private running = 0;
  private started = now();
  private lastEnd = now();

  constructor(
    private readonly seed: Random,
    /** Names the run, so that two runs never send the same message. */
    private readonly name: string,
    private readonly cluster: Cluster,
    private readonly tenants: readonly Credentials[],
  ) {
    // Each caller listens while it waits for an API.
    setMaxListeners(0, this.giveUp.signal);
  }

  /** Number of tasks whose callers are at work. */
  get atWork(): number {
    return this.running;
  }

  /** Since `run` was called, in ms. */
  elapsed(): number {
    return now() - this.started;
  }

  /** Since the last task ended, in ms. */
  sinceLastEnd(): number {
    return now() - this.lastEnd;
  }

  /** `count` tasks, spread evenly over `durationMs`, at most `atOnce` of them at a time. Resolves when all are over. */
  async run(count: number, durationMs: number, atOnce: number): Promise<void> {
    this.started = now();
    const slugs = this.tenants.map(({ tenant }) => tenant);
    let next = 0;
    const drive = async (): Promise<void> => {
      while (next < count && !this.giveUp.signal.aborted) {
        const n = next++;
        await delay(Math.max(0, (n / count) * durationMs - this.elapsed()));
        await this.drive(planTask(this.seed, n, slugs));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, drive));
    await Promise.all(this.burstTasks);
  }

  /** Many short tasks at once. Resolves when they have been sent; their ends are awaited by `run`. */
  async burst(tasks: number): Promise<void> {
    const burst = this.bursts++;
    const slugs = this.tenants.map(({ tenant }) => tenant);
    const driven = Array.from({ length: tasks }, (_, n) =>
      this.drive(planBurstTask(this.seed, burst, n, slugs)),
    );
    this.burstTasks.push(...driven);
    await delay(1000);
  }

  /** Callers stop waiting for what has not ended. */
  stopWaiting(): void {
    this.giveUp.abort();
  }

  /** Tenants ask for each other's tasks until `signal` aborts. */
  async askForForeign(signal: AbortSignal): Promise<void> {
    const random = this.seed.fork('foreign');
    while (!signal.aborted) {
      await delay(FOREIGN_ASK_MS);
      const record = this.records[random.integer(0, this.records.length - 1)];
      const strangers = this.tenants.filter(({ tenant }) => tenant !== record?.tenant);
      if (record?.taskId !== undefined && strangers.length > 0)
        await this.ask(random, random.pick(strangers), record);
    }
  }

  oddity(answer: OddAnswer): void {
    this.oddAnswers.push(answer);
  }

  foreignMark(task: string, tenant: string, text: string): void {
    this.foreignAsks.push({ method: `frame of ${task}`, asker: tenant, outcome: text });
  }

  private async ask(random: Random, stranger: Credentials, record: TaskRecord): Promise<void> {
    const { taskId, expected } = record;
    const caller = new Caller(stranger, random.pick(['1.0', '0.3'] as const), this);
    const { get, cancel, subscribe, stream, send } = caller.dialect.methods;
    const kind = random.pick([get, cancel, subscribe, stream, send]);
    const speaks = kind === stream || kind === send;
    const message = { messageId: randomUUID(), text: stranger.mark, metadata: {}, taskId: taskId ?? '' };
    const params = speaks ? caller.dialect.sendParams(message, 'block') : { id: taskId };
    const request = { task: 'foreign', agent: expected.agent, method: kind, params, understood: [NOT_FOUND] };
    const api = random.pick(await this.cluster.someApis());
    const outcomes: string[] = [];
    this.foreignAsked += 1;
    if (kind === stream || kind === subscribe) {
      const end = await caller.stream(api, request, ({ raw }) => (outcomes.push(raw), 'cut'));
      if (end.kind === 'ended') outcomes.push('an empty stream');
    } else {
      const outcome = await caller.call(api, request);
      if (outcome.kind === 'result') outcomes.push(JSON.stringify(outcome.result));
    }
    // Whatever else it was is judged with the other oddities.
    for (const outcome of outcomes) this.foreignAsks.push({ method: kind, asker: stranger.tenant, outcome });
  }

  private async drive(plan: TaskPlan): Promise<void> {
    const who = this.tenants[plan.tenant]!;
    const around: Surroundings = {
      apis: () => this.cluster.someApis(this.giveUp.signal),
      giveUp: this.giveUp.signal,
      messageId: (of, turn) => messageIdOf(of, turn, this.name),
    };
    const scenario = new Scenario(plan, new Caller(who, plan.generation, this), around, who.tenant);
    this.records.push(scenario.record);
    this.running += 1;
    await scenario.run().finally(() => {
      this.running -= 1;
      this.lastEnd = now();
    });
  }
}
