import { readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { ToAgent } from '../protocol.js';
import { FrameReader } from '../frame-reader.js';
import { FrameBatch } from '../frame-batch.js';

// The file descriptors with which `AgentChild` starts this process.
const IN = 3;
const OUT = 4;

/** Frames come from the worker alone, which this process trusts. */
const MAX_FRAME = 1024 * 1024 * 1024;

/** Pause before another try while the pipe to the worker is full. */
const POLL_MS = 2;

/** Maximum time that a message waits while turns take the thread, in ms. */
const MAX_UNSENT_MS = 2;

/** The channel to the worker. A write blocks until the pipe has room, because the worker always reads. */
export class WorkerChannel {
  private readonly frames = new FrameReader(MAX_FRAME);
  private readonly bytes = Buffer.allocUnsafe(64 * 1024);
  private readonly pause = new Int32Array(new SharedArrayBuffer(4));
  private readonly unsent = new FrameBatch();
  private unsentSince = 0;

  constructor(private readonly onMessage: (message: ToAgent) => void) {
    const socket = new Socket({ fd: IN, readable: true, writable: false });
    socket.on('data', (chunk: Buffer) => this.onInput(chunk));
    // The worker has ended.
    socket.on('close', endGroup);
  }

  /** Adds a message. It goes with `flush`, or at once if much waits. */
  add(json: string): void {
    if (this.unsent.isEmpty) this.unsentSince = performance.now();
    this.unsent.add(json);
    if (this.unsent.isFull) this.flush();
  }

  /** Sends messages that have waited too long. Call it before other code takes the thread. */
  flushIfLate(): void {
    if (!this.unsent.isEmpty && performance.now() - this.unsentSince > MAX_UNSENT_MS) this.flush();
  }

  /** Sends all messages together: the worker wakes up once, and stores them together. */
  flush(): void {
    if (this.unsent.isEmpty) return;
    const frames = this.unsent.take();
    for (let sent = 0; sent < frames.length;) {
      try {
        sent += writeSync(OUT, frames, sent);
      } catch (error) {
        if (!isBusy(error)) throw error;
        this.sleep();
      }
    }
  }

  /** Handles messages and blocks all other code while the condition holds. */
  block(mustWait: () => boolean): void {
    this.flush();
    while (mustWait()) {
      if (!this.readNow()) this.sleep();
      // Output that the messages caused. Nothing else sends it meanwhile.
      this.flush();
    }
  }

  private readNow(): boolean {
    try {
      const count = readSync(IN, this.bytes);
      if (count === 0) endGroup();
      this.onInput(Buffer.from(this.bytes.subarray(0, count)));
      return true;
    } catch (error) {
      if (!isBusy(error)) throw error;
      return false;
    }
  }

  private onInput(chunk: Buffer): void {
    for (const text of this.frames.push(chunk)) {
      // oxlint-disable-next-line no-restricted-properties -- the worker wrote it
      this.onMessage(JSON.parse(text) as ToAgent);
    }
  }

  private sleep(): void {
    Atomics.wait(this.pause, 0, 0, POLL_MS);
  }
}

/** Kills the process group: the process leads it, and the agent's children are in it. */
const endGroup = (): boolean => process.kill(-process.pid, 'SIGKILL');
const isBusy = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EAGAIN';
