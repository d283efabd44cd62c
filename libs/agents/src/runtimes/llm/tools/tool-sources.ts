import type { ApprovalAnswer } from '../../../approvals.js';
import type { Turn } from '../../../agent-runtime.js';
import type { LlmConfig } from '../llm-config.js';
import { AgentFailure } from '../agent-failure.js';
import type { RemoteCall } from './remote-call.js';

/** A JSON schema of an object. */
export type JsonSchema = Record<string, unknown>;

/** A file of a tool result, for the callers of the task. */
export interface ToolFile {
  name: string;
  mediaType: string;
  base64: string;
}

/** Resources that a result of an MCP server names. */
export interface LinkedResources {
  /** Name of the server in the settings, and its address: a resource of one server is nothing at another. A program has none. */
  server: string;
  url?: string;
  uris: string[];
}

/** One of them. */
export type ResourceLink = Omit<LinkedResources, 'uris'> & { uri: string };

/** Reads a resource at the server that has linked it. Rejects as `execute` of a tool. */
export type ReadResource = (
  link: ResourceLink,
  call: Pick<ToolCallContext, 'signal' | 'report'>,
) => Promise<ToolResult>;

/** The result of a tool call. The model reads a failure, too, and can try something else. */
export interface ToolResult {
  ok: boolean;
  /** A JSON value. */
  content: unknown;
  /** Text for the model in place of `content` as JSON. */
  text?: string;
  /** Maximum characters that the model reads at once. It can read on with `read_result`. */
  limit?: number;
  /** Callers receive them as artifacts. The model reads only `text`. */
  files?: ToolFile[];
  /** The model can read them. */
  links?: LinkedResources;
  /** Replaces the `tool-call` event for callers by an artifact of this kind with one data part. */
  shown?: { kind: string; data: Record<string, unknown> };
}

/** A tool that a model can call. */
export interface AgentTool {
  /** 1 to 64 letters, digits, underscores or hyphens; unique in its agent. */
  name: string;
  description: string;
  /** The input is validated against it before `execute` is called. */
  inputSchema: JsonSchema;
  /** A person must approve each call. */
  needsApproval: boolean;
  /** Name of the MCP server that provides the tool. */
  server?: string;
  /** Baton itself provides the tool. */
  isOwn?: true;
  /** It is a function of the agent's author. */
  isFunction?: true;
  /**
   * What to do with a call whose outcome is unknown, because its worker crashed or its connection broke during it. `again`: call again.
   * `never`: the model reads that the outcome is unknown. `ask`: ask a person whether to call again.
   */
  repeat: 'again' | 'never' | 'ask';
  /**
   * Makes the call. Rejects with an error that the model cannot handle: the task fails. Rejects with a `Suspension` if
   * the result comes from another task: the call is made again when that task has ended. Rejects with
   * `ApprovalsPending` if that task asks a person: the call is made again with the `answer`. The same is true for calls with which a
   * tool server continues by itself (`kept`). Rejects with `UndecidedCall` if a person must be asked whether to call again.
   */
  execute(input: unknown, call: ToolCallContext): Promise<ToolResult>;
  /**
   * Reads the outcome of a call whose process has died. Unset: it cannot be read. Rejects with `UndecidedCall` if a person must be asked.
   * @returns the result of the call; undefined: it is made again
   */
  verify?(input: unknown, call: Pick<ToolCallContext, 'key' | 'signal'>): Promise<ToolResult | undefined>;
}

export interface ToolCallContext {
  /** Unique in the task, and the same in every attempt. */
  id: string;
  /** The effect key of the call: the same in every attempt, and different for each call of all tasks. */
  key: string;
  /** Position among the calls of this tool in the same step, from 1. */
  lane: number;
  /** A person's answer after this call rejected with `ApprovalsPending`. It is the same in every attempt. */
  answer?: ApprovalAnswer;
  /** `traceparent` of the span of the call, for its child tasks. Unset: tracing is off. */
  traceparent?: string | undefined;
  /** Aborts when the turn is stopped. */
  signal: AbortSignal;
  /** What any attempt has stored of the call. */
  kept?: RemoteCall | undefined;
  /** Stores the call. Resolves when it is durable. Unset: the call must end in this attempt. */
  keep?: (call: RemoteCall) => Promise<void>;
  /** Publishes the progress of the call to the callers of the task. */
  report?: (text: string) => void;
  /** The fault of a value that a person has entered, or undefined. */
  checkForm?: (schema: JsonSchema, value: unknown) => Promise<string | undefined>;
}

/** A call that its server works on by itself: the pause before the next poll, and the message of the server. */
export interface WaitingCall {
  waitMs: number;
  said?: string;
}

/** A source of tools, such as MCP servers or other agents. It is opened for each turn and closed at its end. */
export interface ToolSource {
  /** Rejects with an `AgentFailure` if the turn cannot run without the tools. */
  open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools>;
  /**
   * Polls a call that its server works on, without opening the tools.
   * @returns undefined: its state has changed, or it is no call of this source
   */
  pollTask?(
    turn: Turn,
    config: LlmConfig,
    kept: RemoteCall,
    keep: (call: RemoteCall) => Promise<void>,
    signal: AbortSignal,
  ): Promise<WaitingCall | undefined>;
}

/** The instructions of a tool server for the use of its tools. */
export interface ServerInstructions {
  server: string;
  text: string;
}

export interface OpenTools {
  tools: AgentTool[];
  instructions?: readonly ServerInstructions[];
  /** Sentences of Baton about the tools in this turn, for the model. */
  notes?: readonly string[];
  /** Unset: no tool links resources. */
  readResource?: ReadResource;
  close(): Promise<void>;
}

/** All sources of tools. */
export class ToolSources {
  constructor(private readonly sources: readonly ToolSource[]) {}

  /** Polls the call at the source that has made it. */
  async pollTask(...call: Parameters<NonNullable<ToolSource['pollTask']>>): Promise<WaitingCall | undefined> {
    for (const source of this.sources) {
      const found = await source.pollTask?.(...call);
      if (found) return found;
    }
    return undefined;
  }

  /** Opens the tools of an agent for one turn. If a source fails, rejects with AgentFailure and closes the others. */
  async open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools> {
    const opened = await Promise.allSettled(this.sources.map((source) => source.open(turn, config, signal)));
    const open = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const close = async (): Promise<void> => {
      await Promise.allSettled(open.map((one) => one.close()));
    };
    const failure = opened.find((one) => one.status === 'rejected');
    const tools = open.flatMap((one) => one.tools);
    const instructions = open.flatMap((one) => one.instructions ?? []);
    const notes = open.flatMap((one) => one.notes ?? []);
    const readResource = open.find((one) => one.readResource)?.readResource;
    const names = new Set<string>();
    const twice = tools.find(({ name }) => names.size === names.add(name).size);
    if (!failure && !twice)
      return { tools, instructions, notes, ...(readResource && { readResource }), close };
    await close();
    throw failure?.reason ?? new AgentFailure(`The agent has two tools named "${twice?.name}".`);
  }
}
