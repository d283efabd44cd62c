import type { RecordedStep, StepMessage } from '../runtimes/executor/step-protocol.js';

/** Records the steps of a unit test as a worker would store them. */
export class StepRecorder {
  private readonly steps: RecordedStep[];
  private ends: number;
  /** What was stored when a step had ended, after each end. */
  readonly states: RecordedStep[][] = [];

  /** @param recorded what was stored before */
  constructor(recorded: readonly RecordedStep[] = []) {
    this.steps = structuredClone([...recorded]);
    this.ends = Math.max(0, ...recorded.map(({ ended }) => ended?.order ?? 0));
  }

  note(message: StepMessage): void {
    const { id } = message;
    if (message.op === 'begin') {
      const { name, nth, kind, alone } = message;
      const known = this.steps.find((step) => step.id === id);
      if (known) known.attempts += 1;
      else this.steps.push({ id, name, nth, kind, alone, attempts: 1, failures: 0 });
      return;
    }
    const step = this.steps.find((one) => one.id === id);
    if (!step) return;
    if (message.op === 'fail') step.failures += 1;
    if (message.op === 'end') step.ended = { order: ++this.ends, ...resultOf(message) };
    else if (message.op === 'fail' && message.retryMs === undefined)
      step.ended = { order: ++this.ends, error: message.error };
    else return;
    this.states.push(structuredClone(this.steps));
  }
}

const resultOf = ({ result }: { result?: string }): { result?: string } =>
  result === undefined ? {} : { result };
