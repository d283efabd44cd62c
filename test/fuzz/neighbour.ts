import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { TaskCaller } from './task-caller.js';

const PAUSE_MS = 100;
/** On a machine that has much else to do; that it is not slower for the sake of others is for the benchmark. */
const END_MS = 60_000;

/** Another tenant, whose `echo` is to answer whatever the first one sends. */
export class Neighbour {
  answered = 0;
  slowestMs = 0;
  readonly problems: string[] = [];
  private readonly over = new AbortController();
  private readonly asking: Promise<void>;

  constructor(url: string, token: string) {
    this.asking = this.ask(new TaskCaller(url, token, new http.Agent({ keepAlive: true })));
  }

  async stop(): Promise<void> {
    this.over.abort();
    await this.asking;
  }

  private async ask(caller: TaskCaller): Promise<void> {
    while (!this.over.signal.aborted) {
      const from = performance.now();
      const { state, problem } = await caller.settle('echo', this.answered % 2 ? '0.3' : '1.0', END_MS);
      this.slowestMs = Math.max(this.slowestMs, performance.now() - from);
      if (state === 'completed') this.answered += 1;
      else this.problems.push(`another tenant's echo: ${problem ?? state}`);
      await delay(PAUSE_MS);
    }
  }
}
