/** What a scripted model answers to one request. */
export interface Reply {
  /** Text of the answer; each entry is a chunk of its own when it is streamed. */
  text?: string | readonly string[];
  /** What the model thinks before it answers. */
  reasoning?: string | readonly string[];
  /** Tools it calls. */
  calls?: readonly ToolCall[];
  usage?: { input: number; output: number; cached?: number; written?: number; reasoning?: number };
  finish?: 'stop' | 'length' | 'filter';
  /** Why the answer ended, in the provider's own word. */
  reason?: string;
  /** An error in place of an answer: this HTTP status. */
  status?: number;
  /** Message of the error. */
  error?: string;
  /** In place of the provider's own answer: this text, or this object as JSON. With `status` 200 also. */
  body?: string | object;
  headers?: Record<string, string>;
  /** What goes wrong with a stream, and after how many of its events. */
  fault?: Fault;
  /** The request must contain this text of JSON. If not, the answer is an error with status 400. */
  demands?: string;
  /** Changes the events of a stream. A string among them is sent as it is. */
  wire?: (events: ProviderEvent[]) => readonly (ProviderEvent | string)[];
  /** The connection stays open after the last event. */
  open?: true;
  /** Nothing is answered before it resolves. */
  after?: Promise<unknown>;
  /** Milliseconds before each event of a stream. */
  delayMs?: number;
  /** Awaited before each event of a stream, with the number of those that were sent. */
  pace?: (sent: number) => Promise<unknown>;
}

export interface ToolCall {
  name: string;
  /** An object, or text as it is: JSON that is broken, for instance. */
  input: object | string;
  id?: string;
}

export interface Fault {
  /**
   * `break` cuts the connection, `end` closes the stream as if it were over, `stall` sends nothing more, `garbage`
   * sends something that is no event and continues, `error` sends the provider's event of an error.
   */
  kind: 'break' | 'end' | 'stall' | 'garbage' | 'error';
  /** Events that are sent before it. */
  after: number;
}

/** A request as a provider sees it. */
export interface ModelRequest {
  api: 'openai-chat' | 'openai-responses' | 'anthropic' | 'google';
  path: string;
  headers: Record<string, string | undefined>;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at the wire
  body: any;
  streamed: boolean;
  model: string;
  /** Resolves when the answer was sent whole (true), or the connection was closed before (false). */
  answered: Promise<boolean>;
}

/** One server-sent event. */
export interface ProviderEvent {
  event?: string;
  data: object | string;
}

/** How one of the interfaces writes a reply. */
export interface Dialect {
  whole(reply: Reply, request: ModelRequest): object;
  events(reply: Reply, request: ModelRequest): ProviderEvent[];
  error(status: number, message: string): object;
  /** The event of an error in the middle of a stream. */
  errorEvent(message: string): ProviderEvent;
}

export const chunksOf = (text: string | readonly string[] | undefined): readonly string[] =>
  text === undefined ? [] : typeof text === 'string' ? [text] : text;

export const wholeOf = (text: string | readonly string[] | undefined): string => chunksOf(text).join('');

export const inputOf = ({ input }: ToolCall): string =>
  typeof input === 'string' ? input : JSON.stringify(input);

export const idOf = ({ id }: ToolCall, index: number): string => id ?? `call_${index + 1}`;

export const usageOf = ({ usage }: Reply) => ({
  input: 10,
  output: 5,
  cached: 0,
  written: 0,
  reasoning: 0,
  ...usage,
});
