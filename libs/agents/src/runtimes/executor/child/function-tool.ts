import type { Verified } from './steps.js';

// The types of the functions that a model may call (docs/agents/functions.md). Types only, as in `steps.ts`.

/** A schema of zod 4.2 or newer, or of another library that implements Standard Schema and Standard JSON Schema. */
export interface ToolSchema<Input = unknown> {
  readonly '~standard': {
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Input> | Promise<SchemaResult<Input>>;
    readonly types?: { readonly input: unknown; readonly output: Input } | undefined;
  };
}

export type SchemaResult<Input> =
  | { readonly value: Input; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** What a function may use while it is called. */
export interface FunctionToolCall {
  /** Effect key: the same in every attempt of this call, and different for each call. Give it to the system that the call changes. */
  key: string;
  taskId: string;
  contextId: string;
  /** Id of the tenant whose task it is. */
  tenant: string;
  /** Aborts when the task is canceled or the call takes too long. */
  signal: AbortSignal;
  /** A secret of the tenant that `config.functions.secrets` of the `agent.yaml` names. */
  secret: (name: string) => Promise<string>;
}

/** A function that the model of an agent may call. */
export interface FunctionTool<Input> {
  /** Tells the model what the function does and when to call it. */
  description: string;
  /** The schema of an object, as a JSON schema or of zod. With zod, `execute` gets the parsed input. */
  inputSchema: ToolSchema<Input> | Readonly<Record<string, unknown>>;
  /** A person must approve each call. Default: false */
  needsApproval?: boolean;
  /**
   * What to do with a call whose worker or process died before its result was stored. `repeat`: call again with the same key. `ask`: a
   * person decides whether to call again. `fail`: never call again, the model reads that the outcome is unknown. Default: `ask`
   */
  onUnknown?: 'repeat' | 'ask' | 'fail';
  /**
   * Looks what became of a call whose outcome is unknown, before anything else is decided. `done: true` ends it with `result`. `done: false`: it was
   * not carried out, and is made again. If it throws, `onUnknown` decides.
   */
  verify?: (call: FunctionToolCall, input: Input) => Verified | Promise<Verified>;
  /** @returns a JSON value for the model. The model reads the message of an error, too, and can try something else */
  execute: (input: Input, call: FunctionToolCall) => unknown;
}
