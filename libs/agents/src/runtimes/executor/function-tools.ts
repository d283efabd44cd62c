import { firstCharacters } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { join } from 'node:path';
import type { Turn } from '../../agent-runtime.js';
import type { LlmConfig } from '../llm/llm-config.js';
import { UndecidedCall } from '../llm/tools/undecided-call.js';
import { notKnown } from '../llm/tools/tool-calls.js';
import type {
  AgentTool,
  OpenTools,
  ToolCallContext,
  ToolResult,
  ToolSource,
} from '../llm/tools/tool-sources.js';
import { AgentCrash } from './agent-crash.js';
import type { Verified } from './child/steps.js';
import { AgentError } from './agent-error.js';
import type { AgentPool } from './agent-pool.js';
import { AgentPools } from './agent-pools.js';
import type { DeclaredTool } from './protocol.js';
import { callRequest, callResult } from './tool-call-request.js';
import { functionFiles } from './function-files.js';
import { portsOf } from './turn-ports.js';
import type { TurnStream } from './turn-stream.js';

const REPEAT = { repeat: 'again', ask: 'ask', fail: 'never' } as const;

/** Maximum characters of an error that the model reads. */
const MAX_ERROR = 4_000;

/** The functions in the folder of an installed llm agent. They run in the agent's processes, as executors do. */
@Injectable()
export class FunctionTools implements ToolSource {
  constructor(
    private readonly environment: Environment,
    private readonly pools: AgentPools,
  ) {}

  /** Rejects with an AgentError if a function cannot be loaded, and with an AgentCrash if that ends the process. */
  async open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools> {
    const tools = (await this.hasFunctions(turn)) ? await this.toolsOf(turn, config, signal) : [];
    return { tools, close: () => Promise.resolve() };
  }

  private async hasFunctions({ agent: { slug, origin, definition, folder } }: Turn): Promise<boolean> {
    const { agentsDir } = this.environment;
    if (origin !== 'installed' || definition.runtime !== 'llm' || !agentsDir) return false;
    return (await functionFiles(folder ?? join(agentsDir, slug))).length > 0;
  }

  private async toolsOf(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<AgentTool[]> {
    const { pool } = this.pools.poolFor(turn);
    const declared = await pool.tools(signal);
    return declared.map((tool) => ({
      name: tool.name,
      description: tool.description,
      inputSchema: { properties: {}, ...tool.inputSchema },
      needsApproval: tool.needsApproval,
      repeat: REPEAT[tool.onUnknown],
      isFunction: true as const,
      execute: (input, call) => callTool({ turn, config, pool, tool, input, call }),
      ...(tool.verifies && {
        verify: (input, call) => verifyCall({ turn, config, pool, tool, input, call }),
      }),
    }));
  }
}

interface ToolUse {
  turn: Turn;
  config: LlmConfig;
  pool: AgentPool;
  tool: DeclaredTool;
  input: unknown;
  call: Pick<ToolCallContext, 'key' | 'signal'>;
}

/** The outcome of a call of a function. `never`: it did not begin. Unset: unknown. */
type FunctionAnswer = { content: unknown } | { never: string } | { unknown: string };

async function callTool(use: ToolUse): Promise<ToolResult> {
  const { turn, tool } = use;
  const { name, onUnknown, verifies } = tool;
  try {
    const answer = await callFunction(use);
    if ('content' in answer) return resultFor(use, answer.content);
    if ('never' in answer)
      return { ok: false, content: `The tool "${name}" was not called. ${answer.never}` };
    const found = verifies ? await verified(use) : undefined;
    if (found?.done) return resultFor(use, found.result ?? null);
    if (found) return { ok: false, content: `The tool "${name}" was not carried out. ${answer.unknown}` };
    return unknownOutcome(name, onUnknown, answer.unknown);
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    const { stack } = error.detail;
    if (stack !== undefined) turn.console.write('error', stack);
    const message = firstCharacters(turn.secrets.redactor.text(error.message), MAX_ERROR);
    return { ok: false, content: `The tool "${name}" failed: ${message}` };
  }
}

/** The outcome of a call of an attempt that has died. */
async function verifyCall(use: ToolUse): Promise<ToolResult | undefined> {
  const found = await verified(use);
  if (found) return found.done ? resultFor(use, found.result ?? null) : undefined;
  const { name, onUnknown } = use.tool;
  const reason = 'It could not be looked up.';
  return onUnknown === 'repeat' ? undefined : unknownOutcome(name, onUnknown, reason);
}

/** The result of the function `verify`. Undefined: it failed. The author reads why. */
async function verified(use: ToolUse): Promise<Verified | undefined> {
  try {
    const answer = await callFunction(use, true);
    return 'content' in answer ? (answer.content as Verified) : undefined;
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    use.turn.console.write('error', error.detail.stack ?? error.message);
    return undefined;
  }
}

const resultFor = ({ turn, config }: ToolUse, content: unknown): ToolResult => ({
  ok: true,
  content: turn.secrets.redactor.value(content),
  limit: config.functions.resultLimit,
});

/**
 * Calls the function in a process of its agent.
 * @param verifies true: `verify` reads the outcome of an earlier call, and the function is not called
 * @returns `never`: the call was not made; `unknown`: it was made, and its outcome is not known
 * @throws AgentError that the function throws
 */
async function callFunction(
  { turn, config, pool, tool: { name }, input, call: { key, signal } }: ToolUse,
  verifies = false,
): Promise<FunctionAnswer> {
  const { tenantId, runId, task } = turn;
  const { timeout } = config.functions;
  const stopped = AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
  const ids = { tenantId, taskId: task.id, runId, alone: false };
  try {
    const request = callRequest(turn, { tool: name, input, key, ...(verifies && { verifies }) });
    const stream = await pool.open(request, ids, portsOf(turn), stopped);
    const content = stream && (await answerOf(stream, stopped));
    signal.throwIfAborted();
    if (!stream) return { never: `No process was free within ${timeout / 1000} s.` };
    if (content === undefined) return { unknown: `It had no result after ${timeout / 1000} s.` };
    return { content };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AgentCrash) return { unknown: `${error.message}.` };
    throw error;
  }
}

/** @returns JSON value of the result; undefined: the call was stopped */
async function answerOf(stream: TurnStream, stopped: AbortSignal): Promise<unknown> {
  const stop = (): void => {
    stream.cancel();
    stream.close();
  };
  stopped.addEventListener('abort', stop, { once: true });
  if (stopped.aborted) stop();
  let result: unknown;
  try {
    for await (const sent of stream.sent()) if ('output' in sent) result = callResult(sent.output) ?? result;
    if (stopped.aborted) return undefined;
    stream.throwIfFailed();
    return result;
  } finally {
    stopped.removeEventListener('abort', stop);
    stream.close();
  }
}

/** The call began, and its outcome is unknown. The model may repeat it if its author allows that. */
function unknownOutcome(name: string, onUnknown: DeclaredTool['onUnknown'], reason: string): ToolResult {
  if (onUnknown === 'ask') throw new UndecidedCall(reason);
  const text =
    onUnknown === 'repeat' ? `The tool "${name}" gave no result. ${reason}` : `${notKnown(name)} ${reason}`;
  return { ok: false, content: text };
}
