import type { ApprovalAnswer } from '../../../approvals.js';
import type { Turn } from '../../../runtime.js';
import type { LlmConfig } from '../config.js';

/** A JSON schema of an object. */
export type JsonSchema = Record<string, unknown>;

/** A file that a tool has made for the callers of the task. */
export interface ToolFile {
  name: string;
  mediaType: string;
  base64: string;
}

/** What a tool answers. A tool that fails says so here: the model sees it and may try something else. */
export interface ToolResult {
  ok: boolean;
  /** A JSON value. */
  content: unknown;
  /** What the model reads in place of `content` as JSON. */
  text?: string;
  /** Callers get them as file parts of the call's artifact; the model only what `text` says of them. */
  files?: ToolFile[];
  /** What callers see of the call in place of the `tool-call` event: an artifact of that kind with one data part. */
  shown?: { kind: string; data: Record<string, unknown> };
}

/** Something a model can call. */
export interface AgentTool {
  /** 1 to 64 letters, digits, underscores or hyphens; unique in its agent. */
  name: string;
  description: string;
  /** The loop checks the model's input against it before `execute` is called. */
  inputSchema: JsonSchema;
  /** A person must agree to each call before it is made. */
  needsApproval: boolean;
  /** Name of the MCP server whose tool it is. */
  server?: string;
  /**
   * What becomes of a call whose worker died while it was made: `again` makes it a second time, `never` tells the
   * model that its outcome is unknown.
   */
  repeat: 'again' | 'never';
  /**
   * Make the call. Rejects only for what the model can do nothing about, which fails the task, and with a
   * `Suspension` where the result comes from another task: the call is made again when that has ended. With
   * `ApprovalsPending` if that task asks a person: the call is made again with the `answer`.
   */
  execute(input: unknown, call: ToolCallContext): Promise<ToolResult>;
}

export interface ToolCallContext {
  /** Unique in the task, and the same in every attempt. */
  id: string;
  /** Among the calls of this tool that the model has made at the same time, from 1. */
  lane: number;
  /** What a person has said when this call ended with `ApprovalsPending`; the same in every attempt. */
  answer?: ApprovalAnswer;
  /** Aborts when the turn is stopped. */
  signal: AbortSignal;
}

/** Tools of one kind (MCP servers, other agents …): opened for each turn, closed when it is over. */
export interface ToolSource {
  /** Rejects with an `AgentFailure` where the turn can't go on without its tools. */
  open(turn: Turn, config: LlmConfig, signal: AbortSignal): Promise<OpenTools>;
}

export interface OpenTools {
  tools: AgentTool[];
  close(): Promise<void>;
}
