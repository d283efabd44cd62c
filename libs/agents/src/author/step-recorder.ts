import type { Compensating, RecordedStep, StepMessage } from '../runtimes/executor/step-protocol.js';

/** `compensates`: it can be undone, also if a later run finds it in its journal. */
type KeptStep = RecordedStep & { compensates?: true };

/** Records the steps of a unit test as a worker would store them. */
export class StepRecorder {
  private readonly steps: KeptStep[];
  private ends: number;
  /** The stored state after the end of each step. */
  readonly states: RecordedStep[][] = [];
  /** Steps whose last try has neither ended nor failed. */
  private readonly underWay = new Set<number>();
  /** The code has thrown, and its steps are compensated. */
  private begun: Compensating | undefined;
  private isClosed = false;

  /** @param recorded what was stored before */
  constructor(recorded: readonly RecordedStep[] = []) {
    this.steps = structuredClone([...recorded]);
    this.ends = Math.max(0, ...recorded.map(({ ended }) => ended?.order ?? 0));
  }

  /** What the next attempt finds. */
  get recorded(): RecordedStep[] {
    return structuredClone(this.steps);
  }

  /** The task is canceled: nothing more is stored. */
  close(): void {
    this.isClosed = true;
  }

  note(message: StepMessage): void {
    if (this.isClosed) return;
    const { id } = message;
    if (message.op === 'compensate') this.begun = message;
    if (message.op === 'begin') {
      if (message.kind === 'run') this.underWay.add(id);
      const { name, nth, kind, alone } = message;
      const undo = message.compensates && { compensates: true as const };
      const known = this.steps.find((step) => step.id === id);
      if (known) known.attempts += 1;
      else this.steps.push({ id, name, nth, kind, alone, attempts: 1, failures: 0, ...undo });
      return;
    }
    const step = this.steps.find((one) => one.id === id);
    if (!step) return;
    this.underWay.delete(id);
    if (message.op === 'fail') step.failures += 1;
    if (message.op === 'end') step.ended = { order: ++this.ends, ...resultOf(message) };
    else if (message.op === 'fail' && message.retryMs === undefined)
      step.ended = { order: ++this.ends, error: message.error };
    else return;
    this.states.push(structuredClone(this.steps));
  }

  /**
   * What another task finds that undoes the steps of this canceled one, as `stepsToUndo` takes it from a stored journal.
   * @returns undefined: nothing is to be undone
   */
  toUndo(): { recorded: RecordedStep[]; compensating: Compensating } | undefined {
    const own = this.steps.filter(({ compensates }) => compensates);
    const orderOf = ({ ended }: RecordedStep): number => ended?.order ?? 0;
    const finished = own.filter(({ ended }) => ended && !ended.error);
    const steps = this.begun?.steps ?? finished.sort((a, b) => orderOf(b) - orderOf(a)).map(({ id }) => id);
    const unknown = this.begun ? [] : own.filter(({ ended }) => !ended).map(({ id }) => id);
    if (!this.begun && steps.length + unknown.length === 0) return undefined;
    const error = this.begun?.error ?? { name: 'TaskCanceled', message: 'the task was canceled' };
    const recorded = this.steps.map((step): RecordedStep => ({
      ...structuredClone(step),
      key: testKeyOf(step.id),
      ...(this.underWay.has(step.id) && { isUnknown: true }),
    }));
    return { recorded, compensating: { error, steps, canceled: true, unknown } };
  }
}

/** The key of a step's effect in a unit test. */
export const testKeyOf = (id: number): string => `test-step-${id}`;

const resultOf = ({ result }: { result?: string }): { result?: string } =>
  result === undefined ? {} : { result };
