// The protocol between a worker and an agent's process: JSON messages, each with a length prefix.

import type { ConsoleLevel } from '../../console-level.js';
import type { ModelPiece } from './model-protocol.js';
import type { Compensating, Parked, RecordedStep, StepMessage, StepReply } from './step-protocol.js';

/** An error in an agent's code, for the agent's author. Callers never see it. */
export interface AgentErrorDetail {
  name: string;
  message: string;
  stack?: string;
  /** The last console lines of the run. */
  output?: string[];
}

/** Why a module could not be loaded. */
export interface LoadFault {
  /** Relative to the agent's folder; empty if the error is in no file. */
  file: string;
  /** Unset if it is unknown. */
  line?: number;
  reason: string;
}

/** The code of an agent. */
export interface CodeFolder {
  /** Absolute path. */
  folder: string;
  /** Path inside of the folder. Default: `index`. */
  module?: string | undefined;
  /** Not one module, but the functions in the folder `tools`. */
  kind?: 'tools' | undefined;
}

/** A function that a model may call, as its module declares it. */
export interface DeclaredTool {
  name: string;
  description: string;
  /** A JSON schema of an object. */
  inputSchema: Record<string, unknown>;
  needsApproval: boolean;
  /** If the process died during a call. */
  onUnknown: 'repeat' | 'ask' | 'fail';
  /** It can read the outcome of an earlier call. */
  verifies: boolean;
}

/** One turn, as the worker sends it to the agent's process. Messages and tasks are ProtoJSON. */
export interface TurnRequest {
  tenantId: string;
  taskId: string;
  contextId: string;
  message: unknown;
  /** `metadata` and `configuration` of the caller's request, as ProtoJSON. Absent: it has neither. */
  details?: unknown;
  /** Absent in a task's first turn. */
  task?: unknown;
  referenceTasks?: unknown[];
  /** Extension URIs that the caller asked for and the agent declares. */
  extensions: string[];
  /** Steps that earlier attempts, or the turns before an answer of the caller, have begun. */
  steps?: RecordedStep[];
  /** An earlier attempt has thrown: only the compensations of its finished steps continue. */
  compensating?: Compensating;
  /** Replay the steps and end the code at the first step that is not recorded: nothing is run, stored or asked for. */
  isReplay?: true;
  /** JSON of the state that the last execution has passed to `continueAs`. Absent: there was none. */
  lastState?: string;
}

/** The value of a secret, or why the turn does not get it. */
export type SecretReply = { value: string } | { refusal: string };

/** Messages from the worker to the process. The worker chooses the number `turn`. */
export type ToAgent =
  | { type: 'load'; code: CodeFolder }
  | { type: 'turn'; turn: number; request: TurnRequest }
  /** Call `cancelTask`. */
  | { type: 'cancel'; turn: number }
  /** The worker no longer reads the events of this turn. */
  | { type: 'close'; turn: number }
  /** The worker has read `size` characters of events. */
  | { type: 'credit'; turn: number; size: number }
  /** The entry of a step is stored. */
  | { type: 'step-reply'; turn: number; id: number; reply: StepReply }
  /** Text of a model call that is under way. */
  | { type: 'model-piece'; turn: number; id: number; piece: ModelPiece }
  /** A secret that the turn has asked for, or why it does not get it. */
  | { type: 'secret-reply'; turn: number; id: number; reply: SecretReply }
  | { type: 'ping' };

/** Messages from the process to the worker. */
export type FromAgent =
  /** `tools`: the functions of a folder of kind `tools`. */
  | { type: 'loaded'; error?: AgentErrorDetail; fault?: LoadFault; tools?: DeclaredTool[] }
  /** The worker returns `size` as credit. An event with `replayed: true` was published by an earlier attempt, too. */
  | { type: 'events'; turn: number; size: number; events: unknown[] }
  /** The turn has no further events. */
  | { type: 'finished'; turn: number }
  /** About a durable step. It follows the events that were published before it. */
  | { type: 'step'; turn: number; step: StepMessage }
  /** The turn asks for a secret of its tenant. */
  | { type: 'secret'; turn: number; id: number; name: string }
  /**
   * The last message of a turn: `execute` returned or threw, or the turn was parked because all its steps wait, or ended because its steps
   * differ from those of an earlier attempt (`mismatch`).
   */
  | { type: 'returned'; turn: number; error?: AgentErrorDetail; parked?: Parked; mismatch?: string }
  /** An uncaught error or rejection. `turn` is null if its turn is unknown. */
  | { type: 'uncaught'; turn: number | null; error: AgentErrorDetail }
  | { type: 'cancel-failed'; turn: number; error: AgentErrorDetail }
  /** A console line of a turn; `turn` is null if it is of none. */
  | { type: 'line'; turn: number | null; level: ConsoleLevel; text: string }
  | { type: 'pong' };

/** Maximum unread events of a turn, in characters of JSON. */
export const WINDOW = 1024 * 1024;
/** Maximum events in one message, in characters of JSON. A larger event is sent alone. */
export const MAX_BATCH = 256 * 1024;

/** Characters of an error, which is shown to the author of an agent and stored with each failed attempt. */
const MAX_TEXT = 4_000;
/** Characters of its stack: some hundred lines. */
const MAX_STACK = 16_000;

/** Describes any thrown value within bounds. Never throws. */
export function errorDetail(error: unknown): AgentErrorDetail {
  try {
    if (!(error instanceof Error)) return { name: 'Error', message: cut(String(error), MAX_TEXT) };
    const { name, message, stack, cause } = error;
    const from = cause instanceof Error ? `\nCaused by: ${cause.stack ?? cause.message}` : '';
    return {
      name: cut(textOf(name), 200),
      message: cut(textOf(message), MAX_TEXT),
      ...(typeof stack === 'string' && { stack: cut(stack + from, MAX_STACK) }),
    };
  } catch {
    return { name: 'Error', message: 'The agent threw a value that cannot be shown' };
  }
}

/** An agent's error may have a name or message that is not a string. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : String(value));

/** Length of a text in bytes, big-endian. The text follows in UTF-8. Both are a frame. */
export const HEADER_BYTES = 4;

/** Shortens a text to `max` characters and an ellipsis. As `shortened` of `@baton/a2a`, which the process of an agent does not load. */
export const cut = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max)}…`;
