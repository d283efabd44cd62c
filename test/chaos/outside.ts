import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { OutsideAddress, OutsideCounts } from './outside-servers.js';

/** The systems outside of Baton that agents change: tool servers and a receiver of effects, in a process that nothing strikes. */
export class Outside {
  private constructor(
    private readonly process: ChildProcess,
    private readonly address: OutsideAddress,
  ) {}

  static async start(): Promise<Outside> {
    const child = fork(join(__dirname, 'outside-main.js'), { execArgv: [] });
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`The process of the outside has ended (${String(code)}).`);
    });
    const [address] = (await Promise.race([once(child, 'message'), ended])) as [OutsideAddress];
    ended.catch(() => undefined);
    return new Outside(child, address);
  }

  get servers(): OutsideAddress['servers'] {
    return this.address.servers;
  }

  get effects(): string {
    return this.address.effects;
  }

  /** All that has come so far. */
  async counts(): Promise<OutsideCounts> {
    return (await (await fetch(this.address.counts)).json()) as OutsideCounts;
  }

  async stop(): Promise<void> {
    const ended = once(this.process, 'exit');
    this.process.disconnect();
    await ended;
  }
}
