import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { type FromAgent, FrameReader, type ToAgent, encodeFrame } from './protocol.js';

export interface ChildOptions {
  /** All that the process sees of the environment. */
  env: Readonly<Record<string, string>>;
  /** Size of the heap of JavaScript. */
  memoryMb: number;
  /** Largest event that an executor may publish, in bytes of JSON. */
  maxEventBytes: number;
}

/** What an agent's process has to say. */
export interface ChildListener {
  /** Throws if the message makes no sense; then `onUnreadable` is called. */
  onMessage(message: FromAgent): void;
  onUnreadable(reason: string): void;
  /** Text that was not written by its console. */
  onText(text: string): void;
}

const MAIN = join(__dirname, 'executor-main.js');
const INPUT = 3;
const OUTPUT = 4;
/** Messages are a little longer than the events in them. */
const ENVELOPE_BYTES = 1024 * 1024;
/** How long the last words of a process are waited for. */
const LAST_WORDS_MS = 500;

/** The operating system's side of an agent's process: start, pipes, end. */
export class AgentChild {
  /** Resolves when it is gone and all it has said was heard, with how it ended (`was ended by SIGKILL`). */
  readonly exited: Promise<string>;
  private readonly child: ChildProcess;
  private readonly frames: FrameReader;

  constructor(
    { env, memoryMb, maxEventBytes }: ChildOptions,
    private readonly listener: ChildListener,
  ) {
    this.frames = new FrameReader(maxEventBytes + ENVELOPE_BYTES);
    const limits = [maxEventBytes, memoryMb].map(String);
    this.child = spawn(process.execPath, [`--max-old-space-size=${memoryMb}`, MAIN, ...limits], {
      env: { ...env },
      // Its console, the messages in, the messages out, and a pipe that closes when this process ends.
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
      // A group of its own: what the agent has started ends with it, and Ctrl-C reaches us alone.
      detached: true,
    });
    this.exited = new Promise((resolve) => this.follow(resolve));
  }

  send(message: ToAgent): void {
    (this.pipe(INPUT) as Writable | undefined)?.write(encodeFrame(JSON.stringify(message)));
  }

  /** End it, and what it has started. */
  kill(): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // Nobody is left in it.
    }
  }

  /** What it has in memory, in MiB; 0 where Linux's `/proc` is not there. */
  async residentMb(): Promise<number> {
    const { pid } = this.child;
    if (pid === undefined) return 0;
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
  }

  private follow(resolve: (how: string) => void): void {
    const { child } = this;
    for (const number of [1, 2, INPUT, OUTPUT, OUTPUT + 1]) {
      // A process that is gone says so with `exit`.
      this.pipe(number)?.on('error', () => undefined);
    }
    for (const number of [1, 2]) {
      const text = this.pipe(number) as Readable | undefined;
      text?.setEncoding('utf8').on('data', (said: string) => this.listener.onText(said));
    }
    this.pipe(OUTPUT)?.on('data', (chunk: Buffer) => this.take(chunk));
    child.once('error', (error) => resolve(`could not be started: ${error.message}`));
    child.once('exit', (code, signal) => {
      this.kill();
      const how = signal === null ? `ended with exit code ${code ?? '?'}` : `was ended by ${signal}`;
      const timer = setTimeout(() => resolve(how), LAST_WORDS_MS);
      child.once('close', () => {
        clearTimeout(timer);
        resolve(how);
      });
    });
  }

  /** There is none where the machine has no more of them; then `error` follows. */
  private pipe(number: number): Readable | Writable | undefined {
    const pipes = this.child.stdio as ChildProcess['stdio'] | undefined;
    return pipes?.[number] ?? undefined;
  }

  private take(chunk: Buffer): void {
    try {
      for (const text of this.frames.push(chunk)) {
        // oxlint-disable-next-line no-restricted-properties -- bounded by `FrameReader`, and of the operator's code
        this.listener.onMessage(JSON.parse(text) as FromAgent);
      }
    } catch (error) {
      this.listener.onUnreadable(error instanceof Error ? error.message : String(error));
    }
  }
}
