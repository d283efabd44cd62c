import type { AgentOutput } from '../../../agent-runtime.js';

/** Progress of tool calls, in the order of its arrival. */
export class CallReports {
  private readonly outputs: AgentOutput[] = [];
  private wake: () => void = () => undefined;

  say(output: AgentOutput): void {
    this.outputs.push(output);
    this.wake();
  }

  /** All progress until a promise is settled. */
  async *until(end: Promise<unknown>): AsyncGenerator<AgentOutput> {
    const ended = { isOver: false };
    const stop = (): void => void (ended.isOver = true);
    const over = end.then(stop, stop);
    for (;;) {
      const outputs = this.outputs.splice(0);
      yield* outputs;
      if (ended.isOver && this.outputs.length === 0) return;
      if (outputs.length === 0) {
        const reported = new Promise<void>((resolve) => (this.wake = resolve));
        await Promise.race([over, reported]);
      }
    }
  }
}
