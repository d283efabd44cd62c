import { write } from 'node:fs';
import { type Debugger, Session } from 'node:inspector';
import { setTimeout as delay } from 'node:timers/promises';
import { workerData } from 'node:worker_threads';
import { Silence } from './silence.js';
import { SHARED, type WatchdogData } from './watchdog.js';

// Runs in a thread of its own. It loads nothing that could fail, and whatever it waits for has a time limit.

const { processName, limitMs, stepMs, silent, shared } = workerData as WatchdogData;
const numbers = new Int32Array(shared);
/** Native code cannot be interrupted. Then there is no stack. The time for which a busy machine gives this thread no CPU does not count. */
const STACK_MS = 5_000;
/** A tick that comes late counts as one tick, however late it is. */
const TICK_MS = 10;
/** Standard output may be a full pipe without a reader. This may be why the process is blocked. */
const WRITE_MS = 1_000;
/** Time to get to the exit. */
const EXIT_MS = 500;
/** Frames of the stack that the log has: more are rarely of use. */
const STACK_FRAMES = 20;

const silence = new Silence(stepMs);
let ending = false;

setInterval(() => {
  const silentMs = silence.step(pulse());
  if (silentMs <= limitMs || ending) return;
  ending = true;
  void endProcess(silentMs).finally(() => (ending = false));
}, stepMs);

/** A pause that a busy machine makes longer counts as short as it was meant. */
async function ticks(ms: number): Promise<undefined> {
  for (let passed = 0; passed < ms; passed += TICK_MS) await delay(TICK_MS);
}

function pulse(): number {
  return Atomics.load(numbers, SHARED.pulse);
}

async function endProcess(silentMs: number): Promise<void> {
  if (Atomics.load(numbers, SHARED.debugged) === 1) return;
  const before = pulse();
  const main = new MainThread();
  try {
    const stack = await main.stop();
    // The event loop works again.
    if (pulse() !== before) return;
    await Promise.race([writeLine(silentMs, stack), delay(WRITE_MS)]);
    process.kill(process.pid, 'SIGKILL');
    // Only the first process of a container is still there: nothing inside of it can send it this signal.
    await main.exit();
  } finally {
    main.release();
  }
}

/** The main thread, inspected as by a debugger. */
class MainThread {
  private readonly session = new Session();
  private readonly urls = new Map<string, string>();
  private frame: string | undefined;

  /** Pauses it. @returns its stack; undefined if it cannot be paused in time */
  async stop(): Promise<string[] | undefined> {
    const { session, urls } = this;
    const paused = new Promise<string[]>((resolve) => {
      session.on('Debugger.paused', ({ params }) => {
        this.frame = params.callFrames[0]?.callFrameId;
        resolve(params.callFrames.slice(0, STACK_FRAMES).map((frame) => lineOf(frame, urls)));
      });
    });
    try {
      session.connectToMainThread();
      session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
      session.post('Debugger.enable');
      session.post('Debugger.pause');
    } catch {
      return undefined;
    }
    return Promise.race([paused, ticks(STACK_MS)]);
  }

  /** Makes the paused main thread end the process. The exit happens when the debugger detaches. */
  async exit(): Promise<void> {
    if (this.frame === undefined) return;
    const expression = 'process.reallyExit(137)';
    this.session.post('Debugger.evaluateOnCallFrame', { callFrameId: this.frame, expression });
    await delay(EXIT_MS);
  }

  release(): void {
    this.session.disconnect();
  }
}

function lineOf(frame: Debugger.CallFrame, urls: ReadonlyMap<string, string>): string {
  const { scriptId, lineNumber } = frame.location;
  const name = frame.functionName || '<anonymous>';
  return `${name} (${urls.get(scriptId) ?? 'native'}:${String(lineNumber + 1)})`;
}

/** One line in the form of the process' log. */
function writeLine(silentMs: number, stack: string[] | undefined): Promise<void> {
  if (silent) return Promise.resolve();
  const line = {
    level: 'fatal',
    time: new Date().toISOString(),
    process: processName,
    pid: process.pid,
    stoodStillMs: Math.round(silentMs),
    limitMs,
    inHand: Atomics.load(numbers, SHARED.inHand),
    stack: stack ?? 'not known: the main thread is in native code',
    msg: 'the event loop is blocked: the process kills itself (LOOP_STALL_MS)',
  };
  return new Promise((resolve) => write(1, `${JSON.stringify(line)}\n`, () => resolve()));
}
