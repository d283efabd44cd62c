import { JsonScanner, describeExcess } from '@baton/a2a';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';

/** Time for a server to end after its input is closed, and again after SIGTERM. */
const GRACE_MS = 500;
const MAX_LINE_BYTES = 16 * 1024 * 1024;

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
  private readonly buffer = new ReadBuffer({ maxBufferSize: MAX_LINE_BYTES });
  private scanner = new JsonScanner();
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

  private read(chunk: Buffer): void {
    try {
      this.assertBounds(chunk);
      this.buffer.append(chunk);
    } catch (error) {
      // The line is too long, or its JSON is too deep.
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
    // The group is empty.
  }
}
