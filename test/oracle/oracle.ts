import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Random } from '../chaos/random.js';
import { mayMeet, targetsOf, taskOfBoth } from './meetings.js';
import { OperationSource } from './operation-source.js';
import { type Answer, lineOf, type Operation, type Snapshot, type Verb } from './operations.js';
import { OUTCOMES } from './outcomes.js';
import { type Failure, shrink, type Step } from './shrink.js';
import { type Result, TaskModel } from './task-model.js';

/** What the oracle judges: it executes operations and shows what is stored. */
export interface OracleSubject {
  /** Forget everything. */
  reset(): Promise<void>;
  apply(operation: Operation): Promise<Answer>;
  snapshot(): Promise<Snapshot>;
  /** Of two runs, the one that was made first. Undefined: they are not both there. */
  olderOf(run: string, other: string): Promise<string | undefined>;
  /**
   * Execute two operations at the same time, each in a process of its own.
   * @param held a task for which both wait until both have begun. Unset: they need not meet
   */
  applyTogether(first: Operation, second: Operation, held: string | undefined): Promise<[Answer, Answer]>;
}

/** An episode begins with nothing stored. */
const STEPS_OF_EPISODE = 100;
/** Operations that are drawn to find one that ends in a new way. */
const CANDIDATES = 30;
/** How often two operations meet. */
const PAIRS = 0.15;
/** Replays that look for a shorter sequence. Most searches end after 50. */
const MAX_REPLAYS = 200;
/** After this time an operation is taken to hang. It takes some milliseconds. */
const MAX_ANSWER_MS = 60_000;

/** Something differs from the model. */
class Difference extends Error {
  override readonly name: string = 'Difference';
}

/** An operation has not answered. What it holds, such as a lock, may hold up all that would follow. */
class NoAnswer extends Difference {
  override readonly name = 'NoAnswer';
}

const nameOf = ({ verb }: Operation, { outcome }: Result): string => `${verb}: ${outcome}`;

/** What has happened so far, by the names of `OUTCOMES`. */
export class Coverage {
  private readonly counts = new Map<string, number>();
  pairs = 0;
  /** Everything has happened. */
  isComplete = false;

  note(operation: Operation, result: Result): void {
    const name = nameOf(operation, result);
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    this.isComplete ||= this.missing().length === 0;
  }

  has(operation: Operation, result: Result): boolean {
    return this.counts.has(nameOf(operation, result));
  }

  /** What has never happened. */
  missing(): string[] {
    const all = Object.entries(OUTCOMES).flatMap(([verb, outcomes]) =>
      outcomes.map((outcome) => `${verb}: ${outcome}`),
    );
    return all.filter((name) => !this.counts.has(name));
  }

  /** Not everything that can come of it has happened. */
  isMissing(verb: Verb): boolean {
    return OUTCOMES[verb].some((outcome) => !this.counts.has(`${verb}: ${outcome}`));
  }

  /** What has happened that the model has no name for. */
  unnamed(): string[] {
    return [...this.counts.keys()].filter((name) => {
      const [verb = '', outcome = ''] = name.split(/: (.*)/s);
      return !(OUTCOMES as Record<string, readonly string[]>)[verb]?.includes(outcome);
    });
  }
}

/** Runs random operations through the model and the subject, and compares after each. */
export class Oracle {
  readonly coverage = new Coverage();
  private steps = 0;
  /** An operation has not answered: nothing can be repeated. */
  private isStuck = false;

  constructor(
    private readonly subject: OracleSubject,
    private readonly seed: string,
  ) {}

  /**
   * Runs episodes: at least so many steps, and on until all outcomes have happened, up to `maxSteps`.
   * @throws an error with the shortest sequence that shows the first difference
   */
  async run(minSteps: number, maxSteps: number): Promise<number> {
    for (
      let episode = 1;
      this.steps < minSteps || (!this.coverage.isComplete && this.steps < maxSteps);
      episode++
    ) {
      await this.episode(episode);
    }
    return this.steps;
  }

  private async episode(number: number): Promise<void> {
    const random = new Random(this.seed).fork(number);
    const play = new Play(this.subject, this.coverage);
    await play.begin();
    const source = new OperationSource(random.fork('operations'), () => play.model);
    const done: Step[] = [];
    for (let i = 0; i < STEPS_OF_EPISODE; i++) {
      const step = this.draw(source, random, play.model);
      done.push(step);
      this.steps += 1;
      try {
        const answers = await play.step(step);
        step.forEach((operation, k) => source.observe(operation, answers[k]));
      } catch (error) {
        throw new Error(await this.explain(number, done, error), { cause: error });
      }
    }
  }

  private draw(source: OperationSource, random: Random, model: TaskModel): Step {
    const first = this.drawNew(source, model);
    if (!random.chance(PAIRS)) return [first];
    for (let i = 0; i < 40; i++) {
      const second = source.next();
      // Operations that have nothing to do with each other show little.
      const targets = targetsOf(first, model);
      const isNear = [...targetsOf(second, model)].some((target) => targets.has(target));
      if ((isNear || i > 30) && mayMeet(first, second, model)) return [first, second];
    }
    return [first];
  }

  /** Of a few operations the first one that ends in a way that has not happened yet. If there is none, the last one. */
  private drawNew(source: OperationSource, model: TaskModel): Operation {
    for (let i = 1; ; i++) {
      const operation = source.next();
      if (i === CANDIDATES || this.coverage.isComplete) return operation;
      const mayBeNew = this.coverage.isMissing(operation.verb);
      if (mayBeNew && !this.coverage.has(operation, model.clone().apply(operation))) return operation;
    }
  }

  private async explain(episode: number, done: readonly Step[], error: unknown): Promise<string> {
    const failure = { steps: done, difference: textOf(error) };
    this.isStuck = error instanceof NoAnswer;
    const { steps, difference } = await shrink(failure, (fewer) => this.replay(fewer), MAX_REPLAYS);
    return [
      `Postgres and the model differ: ORACLE_SEED=${this.seed}, episode ${episode}, after ${done.length} of its steps`,
      `(${this.steps} steps in all). The shortest sequence that was found:`,
      '',
      ...steps.map(
        (step, i) => `${String(i + 1).padStart(3)}. ${step.map(lineOf).join('\n     at the same time: ')}`,
      ),
      '',
      difference,
    ].join('\n');
  }

  /** Undefined: no difference, or two operations at the same time may differ after these steps. */
  private async replay(steps: readonly Step[]): Promise<Failure | undefined> {
    if (this.isStuck) return undefined;
    const play = new Play(this.subject);
    await play.begin();
    for (const [k, step] of steps.entries()) {
      const [first, second] = step;
      if (second && !mayMeet(first, second, play.model)) return undefined;
      try {
        await play.step(step);
      } catch (error) {
        this.isStuck = error instanceof NoAnswer;
        return { steps: steps.slice(0, k + 1), difference: textOf(error) };
      }
    }
    return undefined;
  }
}

/** One way through the model and the subject. */
class Play {
  model = new TaskModel();

  constructor(
    private readonly subject: OracleSubject,
    private readonly coverage?: Coverage,
  ) {}

  async begin(): Promise<void> {
    await this.subject.reset();
  }

  /** @returns the answers @throws Difference */
  async step(step: Step): Promise<Answer[]> {
    const [first, second] = step;
    return second ? this.meet(first, second) : [await this.one(first)];
  }

  private async one(operation: Operation): Promise<Answer> {
    const result = this.model.apply(operation);
    const answer = await answered(this.subject.apply(operation));
    const lines = [
      ...differencesOf('the answer', result.answer, answer),
      ...differencesOf('', this.model.snapshot(), await this.subject.snapshot()),
    ];
    if (lines.length > 0)
      throw new Difference(`The last operation: ${result.outcome}, says the model.\n${lines.join('\n')}`);
    this.coverage?.note(operation, result);
    return answer;
  }

  /** Two operations at the same time: what comes out must be as if one had come after the other. */
  private async meet(first: Operation, second: Operation): Promise<Answer[]> {
    const before = this.model;
    const held = taskOfBoth(first, second, before);
    const answers = await answered(this.subject.applyTogether(first, second, held));
    const stored = await this.subject.snapshot();
    const orders = allowedOrders(before, first, second);
    const fits = orders.find(
      ({ model, results }) =>
        results.every(({ answer }, i) => isAllowedAnswer([first, second][i]!, answer, answers[i])) &&
        isDeepStrictEqual(plain(model.snapshot()), plain(stored)),
    );
    if (!fits) throw new Difference(explainOrders(orders, answers, stored));
    this.model = fits.model;
    await this.adoptAges(first, second);
    [first, second].forEach((operation, i) => this.coverage?.note(operation, fits.results[i]!));
    if (this.coverage) this.coverage.pairs += 1;
    return answers;
  }

  /** Two runs that were made at the same time: either may be the older one. */
  private async adoptAges(first: Operation, second: Operation): Promise<void> {
    const [one, other] = [first, second].map(runMadeBy);
    if (one === undefined || other === undefined) return;
    const older = await this.subject.olderOf(one, other);
    const ageOf = (name: string): number => this.model.runs.find((run) => run.name === name)?.age ?? 0;
    if (older !== undefined && ageOf(older) > ageOf(older === one ? other : one))
      this.model.swapAges(one, other);
  }
}

/** @throws NoAnswer */
async function answered<T>(answer: Promise<T>): Promise<T> {
  const over = new AbortController();
  const silence = delay(MAX_ANSWER_MS, undefined, { signal: over.signal }).then(() => {
    throw new NoAnswer(`The last operation has not answered for ${MAX_ANSWER_MS / 1000} s.`);
  });
  silence.catch(() => undefined);
  return Promise.race([answer, silence]).finally(() => over.abort());
}

interface Order {
  name: string;
  model: TaskModel;
  results: [Result, Result];
}

/**
 * What may come out of two operations at the same time. Sweeps and heartbeats never wait: they skip the rows that the other
 * one has locked.
 */
function allowedOrders(before: TaskModel, first: Operation, second: Operation): Order[] {
  const inOrder = (isFirstFirst: boolean, skips: boolean): Order => {
    const model = before.clone();
    const apply = (operation: Operation, other: Operation): Result =>
      model.apply(operation, skips ? targetsOf(other, before) : undefined);
    if (isFirstFirst) {
      const result = apply(first, second);
      return { name: 'the first one first', model, results: [result, apply(second, first)] };
    }
    const result = apply(second, first);
    return { name: 'the second one first', model, results: [apply(first, second), result] };
  };
  return [false, true].flatMap((skips) => [inOrder(true, skips), inOrder(false, skips)]);
}

/**
 * A claim reads what it gives to its worker in a second step, and may find there what the other operation has done. Whether a run may use
 * a reserved slot is a hint: two runs at the same time may both get it.
 */
function isAllowedAnswer({ verb }: Operation, expected: Answer, answer: Answer): boolean {
  if (verb === 'claimRun' && typeof expected === 'object')
    return answer === 'refused' || typeof answer === 'object';
  return isDeepStrictEqual(withoutHints(expected), withoutHints(answer));
}

const withoutHints = (answer: Answer): Answer =>
  answer === undefined
    ? undefined
    : JSON.parse(
        JSON.stringify(answer, (name, value: unknown) => (name === 'mayUseReserved' ? undefined : value)),
      );

function explainOrders(orders: Order[], answers: Answer[], stored: Snapshot): string {
  const [one, other] = orders;
  const of = ({ name, model, results }: Order): string[] => [
    `If ${name} (${results.map(({ outcome }) => outcome).join('; ')}):`,
    ...results.flatMap(({ answer }, i) => differencesOf(`answer ${i + 1}`, answer, answers[i])),
    ...differencesOf('', model.snapshot(), stored),
  ];
  return [
    'The last two, at the same time, are as if neither had come first.',
    ...[one, other].flatMap((order) => (order ? of(order) : [])),
  ].join('\n');
}

const runMadeBy = (operation: Operation): string | undefined => {
  if (operation.verb === 'createTask') return `${operation.task}/1`;
  return operation.verb === 'continueTask' ? operation.run : undefined;
};

/** As JSON has it: without members that are undefined. */
const plain = (value: unknown): unknown =>
  value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);

/** Where two values differ, one line each. */
export function differencesOf(at: string, expected: unknown, found: unknown): string[] {
  if (isDeepStrictEqual(expected, found)) return [];
  const [a, b] = [plain(expected), plain(found)];
  if (isDeepStrictEqual(a, b)) return [];
  if (isRecord(a) && isRecord(b)) {
    const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return names.flatMap((name) => differencesOf(at === '' ? name : `${at}.${name}`, a[name], b[name]));
  }
  return [`  ${at}: ${show(a)}, says the model; Postgres says ${show(b)}`];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const show = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));
const textOf = (error: unknown): string =>
  error instanceof Difference
    ? error.message
    : error instanceof Error
      ? (error.stack ?? error.message)
      : String(error);
