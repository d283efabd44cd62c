import { Logger, messageOf } from '@baton/telemetry';
import { basename, dirname } from 'node:path';
import { AgentProcess } from './agent-process.js';
import { codeSettings, passedEnvironment } from './executor-config.js';
import type { TurnRequest } from './protocol.js';
import { readAgent } from '../../installed-agents.js';

/** A task whose steps are replayed. */
export interface ReplayedTask {
  taskId: string;
  /** What the process of its agent would get. */
  request: TurnRequest;
}

/** How the replay of a task went. */
export interface ReplayResult {
  taskId: string;
  /** Why the code does not fit the task. Undefined: it does. */
  problem?: string;
}

/** Time for the replay of one task: its code may wait for something outside of its steps. */
const REPLAY_MS = 10_000;
/** A module with many packages loads slowly from a slow disk. */
const LOAD_MS = 60_000;
/** Memory of the process of a replay, which holds the stored steps. */
const MEMORY_MB = 1_024;
/** Larger than the default of `MAX_EVENT_BYTES`: the replay does not have the value of the server. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

/**
 * Replays the recorded steps of tasks against the code in a folder, in a process of its own. No function of a step runs, no other agent
 * is called, and nothing is stored. Code outside of steps runs: it gets a text in place of each secret.
 *
 * @param folder absolute path of the agent's folder, with its `agent.yaml`
 * @throws Error if the agent cannot be loaded
 */
export async function* replayTasks(
  folder: string,
  tasks: AsyncIterable<ReplayedTask>,
): AsyncGenerator<ReplayResult> {
  const slug = basename(folder);
  const found = await readAgent(dirname(folder), slug);
  if (Array.isArray(found)) throw new Error(found.map(({ file, reason }) => `${file}: ${reason}`).join('\n'));
  if (found.definition.runtime !== 'executor') {
    throw new Error(
      `the runtime of ${slug} is ${found.definition.runtime}: only the steps of executors are replayed`,
    );
  }
  const { module, env = [] } = codeSettings(found.definition);
  const start = async (): Promise<AgentProcess> => {
    const process = new AgentProcess({
      agent: slug,
      env: passedEnvironment(env),
      files: undefined,
      memoryMb: MEMORY_MB,
      stallMs: REPLAY_MS,
      loadMs: LOAD_MS,
      maxEventBytes: MAX_EVENT_BYTES,
      logger: Logger.silent(),
    });
    const error = await process.load({ folder, module });
    if (error) throw new Error(error.fault?.reason ?? error.message);
    return process;
  };
  let process = await start();
  try {
    for await (const { taskId, request } of tasks) {
      if (!process.isOpen) process = await start();
      const problem = await replay(process, request);
      yield { taskId, ...(problem !== undefined && { problem }) };
    }
  } finally {
    process.kill('All tasks are replayed');
    await process.ended;
  }
}

async function replay(process: AgentProcess, request: TurnRequest): Promise<string | undefined> {
  const ids = { tenantId: request.tenantId, taskId: request.taskId, runId: request.taskId };
  const stream = process.open({ ...request, isReplay: true }, ids, {
    console: { write: (_, text) => text },
    secret: (name) => Promise.resolve(`secret ${name}`),
  });
  const limit = AbortSignal.timeout(REPLAY_MS);
  limit.addEventListener('abort', () => stream.close(), { once: true });
  try {
    for await (const _ of stream.sent()) {
      // Its output is discarded.
    }
    if (limit.aborted) {
      // What still runs in it must not meet the next task.
      process.retire();
      return `The code neither ended nor came to a step that waits, within ${REPLAY_MS / 1_000} s`;
    }
    stream.throwIfFailed();
    return stream.mismatch;
  } catch (error) {
    return `The code has thrown: ${messageOf(error)}`;
  }
}
