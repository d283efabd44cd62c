import { messageOf } from '@baton/telemetry';
import { type SandboxFiles, sandboxed } from '@baton/sandbox';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { type FromAgent, type ToAgent } from './protocol.js';
import { FrameReader } from './frame-reader.js';
import { FrameBatch } from './frame-batch.js';

export interface ChildOptions {
  /** The whole environment of the process. */
  env: Readonly<Record<string, string>>;
  /** JavaScript heap size. */
  memoryMb: number;
  /** Maximum size of an event, in bytes of JSON. */
  maxEventBytes: number;
  /** The files that the process may use. Undefined: no sandbox. */
  files?: SandboxFiles | undefined;
}

/** Receives the output of an agent's process. */
export interface ChildListener {
  /**
   * May throw if the message is invalid. Then `onUnreadable` is called.
   * @param size of its JSON, in characters
   */
  onMessage(message: FromAgent, size: number): void;
  onUnreadable(reason: string): void;
  /** Text on standard output or error that did not come through the captured console. */
  onText(text: string): void;
}

const MAIN = join(__dirname, 'child', 'executor-main.js');
const INPUT = 3;
const OUTPUT = 4;
// Standard streams, messages in, messages out, and a pipe that closes when this process ends.
const STDIO = ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'] as const;
/** A message is a little longer than its events. */
const ENVELOPE_BYTES = 1024 * 1024;
/** Time to wait for the remaining output after a process has ended. */
const LAST_WORDS_MS = 500;

/** The operating system process of an agent: start, pipes, end. */
export class AgentChild {
  /** Resolves when the process has ended and its output was read, with the way it ended (`was ended by SIGKILL`). */
  readonly exited: Promise<string>;
  private readonly child: ChildProcess;
  private readonly frames: FrameReader;
  private readonly unsent = new FrameBatch();
  private isUnreadable = false;

  constructor(
    { env, memoryMb, maxEventBytes, files }: ChildOptions,
    private readonly listener: ChildListener,
  ) {
    this.frames = new FrameReader(maxEventBytes + ENVELOPE_BYTES);
    const limits = [maxEventBytes, memoryMb].map(String);
    const open = { command: process.execPath, args: [`--max-old-space-size=${memoryMb}`, MAIN, ...limits] };
    const { command, args } = files
      ? sandboxed({ ...files, descriptors: STDIO.length }, open.command, open.args)
      : open;
    this.child = spawn(command, args, {
      env: { ...env },
      stdio: [...STDIO],
      // A process group of its own: a kill reaches the agent's children too, and Ctrl-C does not reach the agent.
      detached: true,
    });
    this.exited = new Promise((resolve) => this.follow(resolve));
  }

  /** Messages of one turn of the event loop are sent together: the process wakes up once, and answers together. */
  send(message: ToAgent): void {
    if (this.unsent.isEmpty) setImmediate(() => this.flush());
    this.unsent.add(JSON.stringify(message));
    if (this.unsent.isFull) this.flush();
  }

  private flush(): void {
    if (this.unsent.isEmpty) return;
    (this.pipe(INPUT) as Writable | undefined)?.write(this.unsent.take());
  }

  /** Kills the process and its children. */
  kill(): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // The group is empty.
    }
  }

  /** Resident memory in MiB; 0 on systems without Linux's `/proc`. */
  async residentMb(): Promise<number> {
    const { pid } = this.child;
    if (pid === undefined) return 0;
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
  }

  private follow(resolve: (how: string) => void): void {
    const { child } = this;
    for (const number of [1, 2, INPUT, OUTPUT, OUTPUT + 1]) {
      // `exit` reports the end of the process.
      this.pipe(number)?.on('error', () => undefined);
    }
    for (const number of [1, 2]) {
      const text = this.pipe(number) as Readable | undefined;
      text?.setEncoding('utf8').on('data', (piece: string) => this.listener.onText(piece));
    }
    this.pipe(OUTPUT)?.on('data', (chunk: Buffer) => this.onOutput(chunk));
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

  /** Undefined if the machine has no free file descriptors. Then `error` follows. */
  private pipe(number: number): Readable | Writable | undefined {
    const pipes = this.child.stdio as ChildProcess['stdio'] | undefined;
    return pipes?.[number] ?? undefined;
  }

  private onOutput(chunk: Buffer): void {
    // What it has written before its end is no longer known to be whole.
    if (this.isUnreadable) return;
    try {
      for (const text of this.frames.push(chunk)) {
        // oxlint-disable-next-line no-restricted-properties -- bounded by `FrameReader`, and of the operator's code
        this.listener.onMessage(JSON.parse(text) as FromAgent, text.length);
      }
    } catch (error) {
      this.isUnreadable = true;
      this.listener.onUnreadable(messageOf(error));
    }
  }
}
