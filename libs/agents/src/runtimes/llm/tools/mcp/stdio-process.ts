import { JsonScanner, describeExcess, parseBoundedJson, wellFormedJson } from '@baton/a2a';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkReport } from './link-report.js';
import { MAX_SAID, McpFailure } from './mcp-failure.js';
import { WireAnswers } from './wire-answers.js';

/** Time for a server to end after its input is closed, and again after SIGTERM. */
const GRACE_MS = 500;
/** A message is a line. The largest result, with an image in it, has some megabytes. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Time to read the rest of an ended process's output. Its children may hold the output open. */
const DRAIN_MS = 200;

export interface StdioCommand {
  command: string;
  args: readonly string[];
  /** Variables in addition to those that every command receives: HOME, PATH, USER and similar. */
  env: Readonly<Record<string, string>>;
}

/**
 * An MCP server in a child process, over its standard input and output. Unlike with the SDK's own transport, the
 * process leads a process group, so its children end with it.
 */
export class StdioProcess implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  private readonly answers = new WireAnswers();
  private scanner = new JsonScanner();
  /** The line that is not complete. */
  private pieces: Buffer[] = [];
  private held = 0;
  /** The end of its standard error. */
  private errors = '';
  /** The last line on standard output that is not a message. */
  private stray = '';
  /** Why there are no more answers. */
  private failure: McpFailure | undefined;
  /** Resolves when an ended process has been read to its end. */
  private drained: Promise<unknown> = Promise.resolve();
  private child: ChildProcessWithoutNullStreams | undefined;

  constructor(
    private readonly line: StdioCommand,
    /** Called with the text on standard error. */
    private readonly onStderr: (text: string) => void,
  ) {}

  /** Resolves when the process runs. */
  async start(): Promise<void> {
    const { command, args, env } = this.line;
    // The child gets neither this process's environment, which holds the platform's keys, nor its folder with `.env`.
    const child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...env },
      cwd: tmpdir(),
      detached: true,
    });
    const fail = (error: Error): void => this.onerror?.(error);
    child.stdin.on('error', fail);
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk)).on('error', fail);
    child.stderr
      .setEncoding('utf8')
      .on('data', (text: string) => {
        this.errors = (this.errors + text).slice(-MAX_SAID);
        this.onStderr(text);
      })
      .on('error', fail);
    child.once('exit', (code, signal) => {
      if (this.child === child) this.failure = endOf(code, signal);
      // Its last answer and the reason of its end may still be in the pipes.
      const closed = once(child, 'close').catch(() => undefined);
      this.drained = Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })]);
      void this.drained.then(() => this.onclose?.());
    });
    this.child = child;
    try {
      await once(child, 'spawn');
    } catch (error) {
      this.child = undefined;
      throw error;
    }
    child.on('error', fail);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { child } = this;
    this.answers.sent(message);
    try {
      if (!child?.stdin.writable) throw new Error('the process has ended');
      if (!child.stdin.write(wellFormedJson(serializeMessage(message)))) await once(child.stdin, 'drain');
    } catch (error) {
      // The input of a process that ends is closed before its exit code is known. The SDK then closes this transport at once.
      if (child) await hasEnded(child);
      throw error;
    }
  }

  /** How the process ended, and the end of its other output. */
  async report(): Promise<LinkReport> {
    await this.drained;
    const serverText = this.errors.trim() === '' ? this.stray : this.errors;
    const { kind, message, details } = this.failure ?? {};
    if (kind === undefined || message === undefined) return { serverText };
    return { serverText, failure: new McpFailure(kind, message, { ...details, serverText, fromEnd: true }) };
  }

  /** Ends the process and its children: closes the input, then SIGTERM, then SIGKILL. */
  async close(): Promise<void> {
    const { child } = this;
    if (child === undefined) return;
    this.child = undefined;
    child.stdin.end();
    if (!(await hasEnded(child))) {
      signalGroup(child, 'SIGTERM');
      await hasEnded(child);
    }
    // Children may be left, also if the leader ended in time.
    signalGroup(child, 'SIGKILL');
  }

  /** Each line is a message. Some servers also write their log to it. */
  private read(chunk: Buffer): void {
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(0x0a, from);
      const piece = chunk.subarray(from, end < 0 ? chunk.length : end);
      this.held += piece.length;
      const excess = this.scanner.scan(piece);
      if (excess || this.held > MAX_LINE_BYTES) {
        const what = excess ? describeExcess(excess) : `is larger than ${MAX_LINE_BYTES} bytes`;
        this.failure = new McpFailure('unreadable', `it sent a message that ${what}`);
        this.onerror?.(this.failure);
        void this.close();
        return;
      }
      this.pieces.push(piece);
      if (end < 0) return;
      this.readLine(Buffer.concat(this.pieces).toString('utf8'));
      this.pieces = [];
      this.held = 0;
      this.scanner = new JsonScanner();
      from = end + 1;
    }
  }

  private readLine(line: string): void {
    if (line.trim() === '') return;
    // `read` bounds it.
    const messages = this.answers.read(parseBoundedJson(line));
    for (const message of messages) this.onmessage?.(message);
    if (messages.length === 0) this.stray = line.slice(0, MAX_SAID);
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): McpFailure {
  const how = signal === null ? `ended with exit code ${code ?? 0}` : `was ended by ${signal}`;
  const remedy =
    'Check command, args and env: does the program start, and does it speak MCP on its standard output';
  return new McpFailure('ended', `its program ${how} before it answered`, { remedy });
}

async function hasEnded(child: ChildProcessWithoutNullStreams): Promise<boolean> {
  if (child.exitCode !== null || child.signalCode !== null) return true;
  const signal = AbortSignal.timeout(GRACE_MS);
  return once(child, 'exit', { signal }).then(
    () => true,
    () => false,
  );
}

function signalGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is empty.
  }
}
