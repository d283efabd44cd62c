import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ConsoleLevel } from '../../../console-level.js';
import { HostedTurn, currentTurn } from './hosted-turn.js';
import { errorDetail, cut } from '../protocol.js';
import { HostedTurns } from './hosted-turns.js';

// The main module of an agent's process. It loads the agent's module and runs its turns. `AgentChild` starts it with these arguments.
const [maxEventBytes = 0, memoryMb = 0] = process.argv.slice(2, 4).map(Number);

/** Characters of one line of the console: enough for a message with some data. */
const MAX_LINE = 4_000;
/** Maximum lines per second of a turn. Further lines are counted and dropped. */
const MAX_LINES = 200;
/** Maximum lines per second of the process: one turn cannot take all of it. */
const MAX_LINES_OF_ALL = 400;

/**
 * Captures standard output and standard error of the agent's code line by line, in the async context of the writer.
 * Long lines are cut, and lines above the rate limit are dropped.
 */
function captureConsole(onLine: (level: ConsoleLevel, text: string) => void): void {
  const all = new LineRate(MAX_LINES_OF_ALL);
  const outside = new LimitedLines(onLine, all);
  const ofTurns = new WeakMap<HostedTurn, LimitedLines>();
  // A turn that writes without end must not take the lines of others.
  const linesNow = (): LimitedLines => {
    const turn = currentTurn.getStore();
    if (!turn) return outside;
    const known = ofTurns.get(turn) ?? new LimitedLines(onLine, all);
    ofTurns.set(turn, known);
    return known;
  };
  // Both write to a stream that other functions of the console use too. They write before they return.
  let level: ConsoleLevel | undefined;
  for (const name of ['debug', 'warn'] as const) {
    const write = console[name].bind(console);
    console[name] = (...values: unknown[]): void => {
      level = name;
      try {
        write(...values);
      } finally {
        level = undefined;
      }
    };
  }
  for (const stream of [process.stdout, process.stderr]) {
    const usual = stream === process.stdout ? 'info' : 'error';
    stream.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean => {
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
      linesNow().add(level ?? usual, text);
      const callback = rest.find((value) => typeof value === 'function') as (() => void) | undefined;
      if (callback) queueMicrotask(callback);
      return true;
    };
  }
}

/** Counts lines by the second. */
class LineRate {
  private left = 0;
  private second = -1;

  constructor(private readonly max: number) {}

  /** Whether one more line is allowed now. */
  take(): boolean {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.second) this.left = this.max;
    this.second = second;
    return this.left-- > 0;
  }
}

class LimitedLines {
  private readonly own = new LineRate(MAX_LINES);
  private dropped = 0;

  constructor(
    private readonly onLine: (level: ConsoleLevel, text: string) => void,
    private readonly all: LineRate,
  ) {}

  /** An incomplete line counts as a line, because another turn may write next. */
  add(level: ConsoleLevel, text: string): void {
    for (const line of text.split('\n', MAX_LINES + 1)) if (line.trim() !== '') this.pass(level, line);
  }

  private pass(level: ConsoleLevel, line: string): void {
    if (!this.own.take() || !this.all.take()) {
      this.dropped += 1;
      return;
    }
    if (this.dropped > 0) this.onLine('warn', `(${this.dropped} more lines were dropped)`);
    this.dropped = 0;
    this.onLine(level, cut(line, MAX_LINE));
  }
}

const turns = new HostedTurns(maxEventBytes, memoryMb);
const turnNow = (): number | null => currentTurn.getStore()?.turn ?? null;

captureConsole((level, text) => turns.say({ type: 'line', turn: turnNow(), level, text }));

const onUncaught = (error: unknown): void =>
  turns.say({ type: 'uncaught', turn: turnNow(), error: errorDetail(error) });
process.on('uncaughtException', onUncaught);
process.on('unhandledRejection', onUncaught);
// Events that were published before count.
process.on('exit', () => turns.flush());

// `process.exit` in an agent's code fails its own turn. Other turns of the process continue.
const exit = process.exit.bind(process);
process.exit = (code): never => {
  if (!currentTurn.getStore()) return exit(code);
  const error = new Error(`The agent called process.exit(${code ?? ''})`);
  onUncaught(error);
  throw error;
};

// Notices the end of the worker also while an agent blocks this thread.
new Worker(join(__dirname, `lifeline-thread${__filename.endsWith('.ts') ? '.ts' : '.js'}`), {
  env: {},
  stdin: false,
}).unref();
