type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

export const MODERN = '2026-07-28';
const NAMES: Record<string, string> = {
  'tools/call': 'name',
  'resources/read': 'uri',
  'prompts/get': 'name',
};

/** An answer over MCP, with all messages that came before it. */
export interface McpAnswer {
  status: number;
  headers: Headers;
  result?: Json;
  error?: Json;
  notifications: Json[];
}

export interface McpOptions {
  /** What the client declares. */
  capabilities?: object;
  meta?: object;
  headers?: Record<string, string | undefined>;
  /** Default: both types. */
  accept?: string;
  signal?: AbortSignal;
  id?: string | number;
}

/** Speaks the revision without sessions, as a client does that has no SDK. */
export class McpCaller {
  private next = 1;

  constructor(
    readonly url: string,
    private readonly token: string,
    private readonly defaults: McpOptions = {},
  ) {}

  with(options: McpOptions): McpCaller {
    return new McpCaller(this.url, this.token, { ...this.defaults, ...options });
  }

  at(url: string): McpCaller {
    return new McpCaller(url, this.token, this.defaults);
  }

  /** The request as it goes out. */
  async post(method: string, params: Json = {}, options: McpOptions = {}): Promise<Response> {
    const {
      capabilities = {},
      meta = {},
      headers = {},
      accept,
      signal,
      id,
    } = { ...this.defaults, ...options };
    const name = params[method.startsWith('tasks/') ? 'taskId' : (NAMES[method] ?? '')] as string | undefined;
    const all: Record<string, string | undefined> = {
      authorization: `Bearer ${this.token}`,
      'content-type': 'application/json',
      accept: accept ?? 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      'mcp-name': name,
      ...headers,
    };
    const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientCapabilities': capabilities,
      ...meta,
    };
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: id ?? this.next++,
      method,
      params: { ...params, _meta },
    });
    return fetch(this.url, { method: 'POST', headers: sent, body, ...(signal && { signal }) });
  }

  async call(method: string, params: Json = {}, options: McpOptions = {}): Promise<McpAnswer> {
    return answerOf(await this.post(method, params, options));
  }

  /** Calls a tool. */
  tool(name: string, args: Json, options: McpOptions = {}): Promise<McpAnswer> {
    return this.call('tools/call', { name, arguments: args }, options);
  }
}

/** Reads an answer to its end. */
export async function answerOf(response: Response): Promise<McpAnswer> {
  const { status, headers } = response;
  const text = await response.text();
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  const messages = isStream ? messagesIn(text) : text === '' ? [] : [JSON.parse(text) as Json];
  const answers = messages.filter((message) => 'result' in message || 'error' in message);
  if (answers.length > 1) throw new Error(`${String(answers.length)} answers to one request: ${text}`);
  const notifications = messages.filter((message) => 'method' in message);
  return { status, headers, ...answers[0], notifications };
}

/** The messages of server-sent events that have come so far. */
export const messagesIn = (text: string): Json[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)) as Json);

/** The texts of a result of a tool. */
export const textsOf = ({ result }: Pick<McpAnswer, 'result'>): string[] =>
  ((result?.content ?? []) as Json[]).filter(({ type }) => type === 'text').map(({ text }) => text as string);
