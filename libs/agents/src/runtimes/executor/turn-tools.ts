import type { ComputePool } from '@baton/compute';
import { clock, messageOf, type Metrics } from '@baton/telemetry';
import { z } from 'zod';
import type { ApprovalAnswer, ApprovalRequest, Decision } from '../../approvals.js';
import { type AgentOutput, type Turn } from '../../agent-runtime.js';
import { Suspension } from '../../suspension.js';
import { SignInNeeded } from '../../sign-in-needed.js';
import { AgentFailure } from '../llm/agent-failure.js';
import { ApprovalsPending } from '../llm/approval/approvals-pending.js';
import { llmConfig, type LlmConfig, toolsAlone } from '../llm/llm-config.js';
import { SchemaChecks } from '../llm/schema-checks.js';
import { UndecidedCall } from '../llm/tools/undecided-call.js';
import { isSentNext, type RemoteCall } from '../llm/tools/remote-call.js';
import { measuredCall, notKnown, notRepeated, progressOf, refused } from '../llm/tools/tool-calls.js';
import type {
  AgentTool,
  JsonSchema,
  OpenTools,
  ToolResult,
  ToolSources,
  WaitingCall,
} from '../llm/tools/tool-sources.js';
import { STEP_LIMITS, type StepFailure } from './step-protocol.js';

/** The stored state of a tool call. */
export interface ToolStep {
  /** Unique in the task. */
  callId: string;
  /** Effect key of the call. */
  key: string;
  /** It was sent, and its server has not answered in any way. */
  isSent: boolean;
  /** The input to which a person has changed it before it was sent. */
  input: unknown;
  /** The state of the call at its server. */
  kept: RemoteCall | undefined;
  /** The answer of a person to the last question of the server. */
  answer: ApprovalAnswer | undefined;
  /** The decision of a person since the call was sent last. */
  decision: Decision | undefined;
  /** ISO 8601, of the question. */
  expiresAt: string | undefined;
}

/** The state of a call at its server, and the settings of the server as the code has written them. */
export interface StoredRemoteCall {
  remote: RemoteCall;
  settings: unknown;
}

/** The tools of one request. `servers`: the settings as the code has written them. */
interface UsedTools {
  config: LlmConfig;
  servers: readonly unknown[];
  tools: readonly AgentTool[];
}

interface CodeCallOptions extends Pick<UsedTools, 'servers'> {
  checks: SchemaChecks;
  ports: ToolCallPorts;
  question: () => ApprovalRequest;
}

/** The records that a tool call stores while it is made. */
export interface ToolCallPorts {
  signal: AbortSignal;
  /** The call is sent next. Without a result its outcome is unknown from then on. */
  onSend: () => Promise<void>;
  /** It was not sent, because the server requires a sign-in first. */
  onRefused: () => Promise<void>;
  /** Stores the state of the call at its server, and the settings of the server. */
  keepRemote: (stored: StoredRemoteCall) => Promise<void>;
  /** Publishes the progress that the server reports. */
  say: (output: AgentOutput) => void;
  /** Stores the result. */
  keep: (call: MadeCall) => Promise<void>;
}

/** A tool call that was made, as an llm agent has it in its journal. */
export interface MadeCall {
  kind: 'result';
  call: string;
  tool: string;
  input: unknown;
  result: ToolResult;
  /** ISO 8601 */
  at: string;
  ms: number;
}

/**
 * The outcome of a use of tools: JSON of the result, a failure, questions to a person, a sign-in that the caller must make, or the
 * time after which the server is asked again. `problem`: why the last answer was invalid.
 */
export type ToolOutcome =
  | { result: string }
  | { failed: StepFailure }
  | { questions: readonly ApprovalRequest[]; problem?: string }
  | { signIn: SignInNeeded }
  | { waitMs: number };

const request = z.strictObject({
  settings: z.strictObject({ mcp: z.array(z.unknown()), approvals: z.unknown().optional() }),
  /** Unset: the tools are listed. */
  call: z.strictObject({ tool: z.string(), input: z.unknown() }).optional(),
});

/** The tools of MCP servers for the agents in code of a worker. */
export class TurnTools {
  private readonly opened = new Map<string, Promise<OpenTools>>();

  constructor(
    private readonly sources: ToolSources,
    private readonly pool: ComputePool,
    private readonly metrics: Metrics,
  ) {}

  /** The tools of one turn. Close it at its end. */
  ofTurn(): TurnTools {
    return new TurnTools(this.sources, this.pool, this.metrics);
  }

  async close(): Promise<void> {
    const all = [...this.opened.values()];
    this.opened.clear();
    await Promise.allSettled(all.map(async (opening) => (await opening).close()));
  }

  /**
   * Lists tools, or makes a call, as far as it may be made now. Rejects only if the turn cannot continue.
   * @param json of the request of the process
   */
  async use(turn: Turn, json: string, step: ToolStep, ports: ToolCallPorts): Promise<ToolOutcome> {
    try {
      // oxlint-disable-next-line no-restricted-properties -- bounded, and of the operator's code
      const { data, error } = request.safeParse(JSON.parse(json || '{}'));
      if (!data) throw new AgentFailure(`the settings of tools: ${error.issues[0]?.message ?? 'not valid'}`);
      const config = configOf(data.settings);
      const { tools } = await this.open(turn, config, ports.signal);
      const servers = data.settings.mcp;
      return data.call
        ? await this.call(turn, { config, servers, tools }, data.call, step, ports)
        : bounded(tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })));
    } catch (error) {
      if (error instanceof SignInNeeded && error.isCallers && !ports.signal.aborted) return { signIn: error };
      if (!(error instanceof AgentFailure) || ports.signal.aborted) throw error;
      return { failed: { name: 'ToolError', message: error.message } };
    }
  }

  /**
   * Polls a call that its server works on, without opening the tools.
   * @param settings of the server, as they were stored
   * @returns undefined: its state has changed
   */
  async pollTask(
    turn: Turn,
    { remote, settings }: StoredRemoteCall,
    keep: (remote: RemoteCall) => Promise<void>,
    signal: AbortSignal,
  ): Promise<WaitingCall | undefined> {
    let config: LlmConfig;
    try {
      config = llmConfig(toolsAlone([settings]));
    } catch {
      // The code has the settings.
      return undefined;
    }
    return this.sources.pollTask(turn, config, remote, keep, signal);
  }

  private open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools> {
    const key = JSON.stringify(config.tools);
    const opening = this.opened.get(key) ?? this.sources.open(turn, config, signal);
    this.opened.set(key, opening);
    opening.catch(() => this.opened.delete(key));
    return opening;
  }

  private async call(
    turn: Turn,
    { config, servers, tools }: UsedTools,
    { tool: name, input: written }: { tool: string; input?: unknown },
    step: ToolStep,
    ports: ToolCallPorts,
  ): Promise<ToolOutcome> {
    const tool = tools.find((each) => each.name === name);
    if (!tool) {
      const names = tools.map((each) => each.name).join(', ') || 'none';
      throw new AgentFailure(`There is no tool "${name}". The tools are: ${names}.`);
    }
    const { decision, kept } = step;
    const asked = step.input ?? written;
    const checks = new SchemaChecks(this.pool, turn.tenantId);
    const wrong = await checks.input(name, tool.inputSchema, asked);
    if (wrong) return bounded(failedResult(`The input of "${name}" is not valid: ${wrong}.`));
    const isUnknown = step.isSent && tool.repeat !== 'again';
    if (isUnknown && tool.repeat === 'never')
      return bounded(failedResult(`${notKnown(name)} It was not made again.`));
    if (decision?.approved === false) {
      return bounded(isUnknown ? notRepeated(name, decision.reason) : refused(decision.reason));
    }
    const question = (): ApprovalRequest => requestOf(tool, asked, step, isUnknown, config);
    // The server has the call already.
    const isNew = kept === undefined;
    // Another task may have made the call: this one is its fork.
    const { origin } = turn;
    const mayRepeat = origin !== undefined && origin.effectsOf === undefined && tool.repeat === 'never';
    if (((isNew && (tool.needsApproval || mayRepeat)) || isUnknown) && !decision)
      return { questions: [question()] };
    const changed = decision?.input;
    const input = isUnknown ? asked : (changed ?? asked);
    const problem = await checks.input(name, tool.inputSchema, input);
    if (problem)
      return { questions: [question()], problem: `The changed input of "${name}" is not valid: ${problem}.` };
    return this.makeCall(turn, tool, input, step, { checks, servers, ports, question });
  }

  private async makeCall(
    turn: Turn,
    tool: AgentTool,
    input: unknown,
    { callId, key, kept, answer }: ToolStep,
    { checks, servers, ports, question }: CodeCallOptions,
  ): Promise<ToolOutcome> {
    const { name } = tool;
    const { signal, onSend, onRefused, keepRemote, keep, say } = ports;
    const isNoted = tool.repeat !== 'again';
    if (isNoted && isSentNext(kept, answer)) await onSend();
    // An error of the journal ends the attempt. The code does not get it.
    const lost = new Set<unknown>();
    const context = {
      id: callId,
      key,
      lane: 1,
      signal,
      kept,
      ...(answer && { answer }),
      keep: (remote: RemoteCall) =>
        keepRemote({ remote, settings: servers.find((server) => nameOf(server) === remote.server) }).catch(
          (error: unknown) => {
            lost.add(error);
            throw error;
          },
        ),
      report: progressOf(turn, { id: callId, tool: name }, say),
      checkForm: (schema: JsonSchema, value: unknown) => checks.input(name, schema, value),
    };
    const began = Date.now();
    const at = clock.date().toISOString();
    let made: ToolResult;
    try {
      made = await measuredCall(turn, this.metrics, { call: { toolCallId: callId }, tool }, (span) =>
        tool.execute(input, { ...context, traceparent: span?.traceparent }),
      );
    } catch (error) {
      if (error instanceof UndecidedCall) return { questions: [{ ...question(), unknownOutcome: true }] };
      if (signal.aborted || lost.has(error) || error instanceof AgentFailure) throw error;
      if (error instanceof Suspension) return { waitMs: error.wakeInMs ?? 0 };
      if (error instanceof ApprovalsPending) return { questions: error.requests };
      if (error instanceof SignInNeeded) {
        // It is made again after the sign-in.
        if (isNoted) await onRefused();
        throw error;
      }
      throw new AgentFailure(messageOf(error), { cause: error });
    }
    const result = turn.secrets.redactor.value(made);
    const outcome = bounded(result);
    const shown = 'result' in outcome ? result : failedResult(TOO_LARGE);
    await keep({
      kind: 'result',
      call: callId,
      tool: name,
      input,
      result: shown,
      at,
      ms: Date.now() - began,
    });
    return outcome;
  }
}

const nameOf = (server: unknown): unknown => (server as { name?: unknown } | null)?.name;

/** The result of a call that was made, for its process. */
export const resultOf = ({ result }: MadeCall): string => JSON.stringify(forCode(result));

/** The part of a result that the code reads. */
const forCode = ({ ok, content, text, files }: ToolResult): object => ({
  ok,
  content,
  ...(text !== undefined && { text }),
  ...(files && files.length > 0 && { files }),
});

const TOO_LARGE = `its result has more than ${STEP_LIMITS.resultBytes} bytes`;

function bounded(value: ToolResult | readonly object[]): ToolOutcome {
  const json = JSON.stringify('ok' in value ? forCode(value) : value);
  if (Buffer.byteLength(json) <= STEP_LIMITS.resultBytes) return { result: json };
  return { failed: { name: 'ToolError', message: TOO_LARGE } };
}

const failedResult = (content: string): ToolResult => ({ ok: false, content });

function requestOf(
  tool: AgentTool,
  input: unknown,
  { callId, expiresAt }: ToolStep,
  isUnknown: boolean,
  { approvals: { guests, by, expires } }: LlmConfig,
): ApprovalRequest {
  const { name, description, server } = tool;
  const fresh = expires === undefined ? undefined : new Date(clock.now() + expires).toISOString();
  const until = expiresAt ?? fresh;
  return {
    callId,
    tool: name,
    description,
    input,
    ...(server !== undefined && { server }),
    ...(isUnknown && { unknownOutcome: true as const }),
    ...(guests && { guests: true as const }),
    ...(by === 'other' && { by }),
    ...(until !== undefined && { expiresAt: until }),
  };
}

function configOf({ mcp, approvals }: z.output<typeof request>['settings']): LlmConfig {
  try {
    return llmConfig(toolsAlone(mcp, approvals));
  } catch (error) {
    throw new AgentFailure(messageOf(error));
  }
}
