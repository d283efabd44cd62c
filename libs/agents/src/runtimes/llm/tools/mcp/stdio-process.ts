import { JsonScanner, describeExcess } from '@baton/a2a';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';

/** How long a server may take to end by itself after its input has, and then after a SIGTERM. */
const GRACE_MS = 500;
const MAX_LINE_BYTES = 16 * 1024 * 1024;

export interface StdioCommand {
  command: string;
  args: readonly string[];
  /** Besides the few variables that every command gets: HOME, PATH, USER and the like. */
  env: Readonly<Record<string, string>>;
}

/**
 * An MCP server that is a child process, spoken to over its standard input and output. Like the SDK's own
 * transport, but the process leads a group of its own, so that whatever it has started ends with it.
 */
export class StdioProcess implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  private readonly buffer = new ReadBuffer({ maxBufferSize: MAX_LINE_BYTES });
  private scanner = new JsonScanner();
  private child: ChildProcessWithoutNullStreams | undefined;

  constructor(
    private readonly line: StdioCommand,
    /** Called with what the process writes to its standard error. */
    private readonly onStderr: (text: string) => void,
  ) {}

  /** Resolves when the process runs. */
  async start(): Promise<void> {
    const { command, args, env } = this.line;
    // Nothing of this process's own environment: it holds the platform's keys. Nor its folder, for its `.env`.
    const child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...env },
      cwd: tmpdir(),
      detached: true,
    });
    const fail = (error: Error): void => this.onerror?.(error);
    child.stdin.on('error', fail);
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk)).on('error', fail);
    child.stderr.setEncoding('utf8').on('data', this.onStderr).on('error', fail);
    child.once('exit', () => this.onclose?.());
    await once(child, 'spawn');
    child.on('error', fail);
    this.child = child;
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.child?.stdin;
    if (!input?.writable) throw new Error('the process has ended');
    if (!input.write(serializeMessage(message))) await once(input, 'drain');
  }

  /** End the process and everything it has started: politely, then not. */
  async close(): Promise<void> {
    const { child } = this;
    if (child === undefined) return;
    this.child = undefined;
    child.stdin.end();
    if (!(await hasEnded(child))) {
      signalGroup(child, 'SIGTERM');
      await hasEnded(child);
    }
    // Whatever is left of the group, also when its leader has gone in time.
    signalGroup(child, 'SIGKILL');
  }

  private read(chunk: Buffer): void {
    try {
      this.assertBounds(chunk);
      this.buffer.append(chunk);
    } catch (error) {
      // A line without end, or JSON that is too deep.
      this.onerror?.(error as Error);
      void this.close();
      return;
    }
    while (this.readMessage());
  }

  /** Each line is a message. */
  private assertBounds(chunk: Buffer): void {
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(0x0a, from);
      const excess = this.scanner.scan(chunk.subarray(from, end < 0 ? chunk.length : end));
      if (excess) throw new Error(`it sent a message that ${describeExcess(excess)}`);
      if (end < 0) return;
      this.scanner = new JsonScanner();
      from = end + 1;
    }
  }

  private readMessage(): boolean {
    try {
      const message = this.buffer.readMessage();
      if (message) this.onmessage?.(message);
      return message !== null;
    } catch (error) {
      this.onerror?.(error as Error);
      return true;
    }
  }
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
    // Nobody is left in it.
  }
}
