import { Oracle, type OracleSubject } from './oracle.js';
import type { Answer, Operation, Snapshot } from './operations.js';
import { shrink, type Step } from './shrink.js';
import { TaskModel } from './task-model.js';

/** A second model with a fault, in place of the stores. */
class FaultySubject implements OracleSubject {
  private model = new TaskModel();

  /** @param execute executes an operation with the fault */
  constructor(private readonly execute: (model: TaskModel, operation: Operation) => Answer) {}

  async reset(): Promise<void> {
    this.model = new TaskModel();
  }

  async apply(operation: Operation): Promise<Answer> {
    return this.execute(this.model, operation);
  }

  async applyTogether(first: Operation, second: Operation): Promise<[Answer, Answer]> {
    return [await this.apply(first), await this.apply(second)];
  }

  async snapshot(): Promise<Snapshot> {
    return this.model.snapshot();
  }

  async olderOf(): Promise<undefined> {
    return undefined;
  }
}

/** The oracle's report of a fault. */
async function report(subject: OracleSubject): Promise<string> {
  const error: unknown = await new Oracle(subject, 'seed')
    .run(20_000, 20_000)
    .catch((reason: unknown) => reason);
  return error instanceof Error ? error.message : 'no difference';
}
afterEach(() => {
  jest.useRealTimers();
});

const stepsOf = (text: string): string[] => text.match(/^ *\d+\. .*/gm) ?? [];

it('prints the few steps that show a fault', async () => {
  const subject = new FaultySubject((model, operation) => {
    const isLost = operation.verb === 'cancelTask' && model.runs.some(({ state }) => state === 'suspended');
    return isLost ? 'lost' : model.apply(operation).answer;
  });
  const steps = stepsOf(await report(subject));
  expect(steps.length).toBeLessThanOrEqual(5);
  expect(steps.at(-2)).toContain('suspend');
  expect(steps.at(-1)).toContain('cancelTask');
  expect(steps[0]).not.toMatch(/quota|retry|key/);
});

it('looks for a shorter sequence in 200 replays and no more, also of a fault that never shows again', async () => {
  let replays = 0;
  const failure = {
    steps: Array.from({ length: 100 }, (): Step => [{ verb: 'findWork' }]),
    difference: 'once',
  };
  const never = async (): Promise<undefined> => {
    replays += 1;
  };
  expect(await shrink(failure, never, 200)).toBe(failure);
  expect(replays).toBe(200);
});

it('reports an operation that never answers, and executes nothing after it', async () => {
  jest.useFakeTimers();
  let isStuck = false;
  let after = 0;
  const subject = new FaultySubject((model, operation) => {
    if (isStuck) after += 1;
    isStuck ||= operation.verb === 'suspend';
    return isStuck ? new Promise(() => undefined) : model.apply(operation).answer;
  });
  let reported: string | undefined;
  void report(subject).then((text) => (reported = text));
  while (reported === undefined) await jest.advanceTimersByTimeAsync(1000);
  expect(reported).toContain('The last operation has not answered for 60 s.');
  expect(stepsOf(reported).at(-1)).toContain('suspend');
  expect(after).toBe(0);
});
