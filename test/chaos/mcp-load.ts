import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENT } from '../support/mcp-server/mcp-server.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import type { ApiAddress, Credentials } from './caller.js';
import type { McpOutcome, McpRecord, McpTaskRecord } from './observations.js';
import type { Outside } from './outside.js';
import { answerOf, RETRY_MS, RetryingClient, retriesOf, textOf } from './retrying-client.js';

const MODERN = '2026-07-28';
const OLDER = '2025-11-25';
const META = 'io.modelcontextprotocol';
/** What is called of which server, in turn. Their number is odd, so that each generation of clients calls each. */
const CALLED = [
  { server: 'modern', kind: 'once' },
  { server: 'sessions', kind: 'once' },
  { server: 'sessionless', kind: 'again' },
  { server: 'modern', kind: 'slow' },
  { server: 'sessionless', kind: 'once' },
  { server: 'modern', kind: 'again' },
  { server: 'sessions', kind: 'again' },
] as const;
/** The agent that has the tools of a server. */
const CLERKS = { modern: 'clerk', sessions: 'clerk-sessions', sessionless: 'clerk-sessionless' } as const;

/** Members that all answers share, as far as this load reads them. */
interface McpAnswer {
  result?: {
    taskId?: string;
    status?: string;
    inputRequests?: Record<string, unknown>;
    isError?: boolean;
    content?: { text?: string }[];
    result?: McpAnswer['result'];
    _meta?: { 'baton/taskId'?: string; 'baton/state'?: string };
  };
  error?: { code: number; message: string };
}

/**
 * Calls over MCP, of a tenant of its own. The agents that they call have a model that calls a tool of another MCP server, which counts its
 * calls: a modern one, an older one with sessions, and one without. The servers are outside. The model lives in this process, which nothing
 * strikes. Where a call waits for a person, the client approves.
 */
export class McpLoad {
  private readonly records: McpRecord[] = [];
  private readonly calling = new Set<Promise<void>>();
  /** Callers wait no longer. */
  private readonly giveUp = new AbortController();
  private readonly stopping = new AbortController();

  private constructor(
    private readonly client: RetryingClient,
    private readonly provider: ModelProvider,
    private readonly outside: Outside,
  ) {}

  static async start(
    apis: () => Promise<readonly ApiAddress[]>,
    who: Credentials,
    outside: Outside,
  ): Promise<McpLoad> {
    const provider = await ModelProvider.start();
    provider.answer(({ body }) => replyTo(body as ChatRequest));
    const load = new McpLoad(new RetryingClient(apis, who), provider, outside);
    setMaxListeners(0, load.giveUp.signal, load.stopping.signal);
    for (const server of ['modern', 'sessions', 'sessionless'] as const) {
      const agent = {
        name: 'Clerk',
        description: 'Calls a tool.',
        runtime: 'llm',
        config: {
          model: 'openai-compatible/m',
          baseUrl: provider.url,
          prompt: 'Call the tool that the message names.',
          tools: { mcp: [{ ...PATIENT, name: 'desk', url: outside.servers[server] }] },
        },
      };
      const path = `/v1/agents/${CLERKS[server]}`;
      await load.client.send('PUT', path, agent, {}, load.stopping.signal);
    }
    return load;
  }

  /** Begins so many calls, spread over the time. */
  async run(calls: number, lastsMs: number): Promise<void> {
    for (let n = 0; n < calls; n++) {
      const record: McpRecord = {
        number: n,
        ...(CALLED[n % CALLED.length] ?? CALLED[0]),
        client: n % 2 === 0 ? MODERN : OLDER,
        calls: [],
        questions: [],
      };
      this.records.push(record);
      const calling = (record.client === MODERN ? this.callModern(record) : this.callOlder(record))
        .catch((error: unknown) => {
          if (!this.giveUp.signal.aborted)
            record.fault = error instanceof Error ? error.message : String(error);
        })
        .finally(() => this.calling.delete(calling));
      this.calling.add(calling);
      await delay(lastsMs / calls);
    }
  }

  /** What has become of the calls, at the latest after `ms`. */
  async outcome(ms: number): Promise<McpOutcome> {
    const over = delay(ms, undefined, { ref: false }).then(() => this.giveUp.abort());
    await Promise.race([over, Promise.all(this.calling)]);
    const { calls } = await this.outside.counts();
    for (const record of this.records) {
      record.calls = calls[record.server]
        .filter(({ input }) => input.n === record.number)
        .map(({ key, at }) => ({ key, at }));
    }
    const received = calls.modern.length + calls.sessions.length + calls.sessionless.length;
    return { records: this.records, tasks: await this.tasks(), received };
  }

  async stop(): Promise<void> {
    this.giveUp.abort();
    this.stopping.abort();
    await this.provider.stop();
  }

  /** All tasks of the tenant, also those whose id no caller has. */
  private async tasks(): Promise<McpTaskRecord[]> {
    const listed = new Map<string, string>();
    let cursor: string | null = '';
    while (cursor !== null) {
      const page: RestList = (await this.client.read(
        `/v1/tasks?limit=100&cursor=${cursor}`,
        this.stopping.signal,
      )) as RestList;
      for (const { task_id: id, first_message: text = '' } of page.tasks) listed.set(id, text);
      cursor = page.next_cursor;
    }
    const tasks: McpTaskRecord[] = [];
    for (const [taskId, words] of listed) {
      const task = await this.client.task(taskId, this.stopping.signal);
      const [, number] = WORDS.exec(words) ?? [];
      tasks.push({
        taskId,
        number: number === undefined ? undefined : Number(number),
        state: task.state,
        text: answerOf(task),
        retries: retriesOf(task),
        effects: await this.client.effects(taskId, this.stopping.signal),
      });
    }
    return tasks;
  }

  /** Before the answer: the ledger has an unknown outcome only while the task waits. */
  private async noteQuestion(record: McpRecord, taskId: string): Promise<void> {
    const effects = await this.client.effects(taskId, this.giveUp.signal);
    record.questions.push(
      effects.filter(({ outcome }) => outcome === 'unknown').map(({ key }) => String(key)),
    );
  }

  /** A client with the tasks extension: it gets the handle at once, and asks for the state until it has ended or waits. */
  private async callModern(record: McpRecord): Promise<void> {
    const called = await this.ask(
      record,
      'tools/call',
      { name: CLERKS[record.server], arguments: { message: wordsOf(record) } },
      CLERKS[record.server],
    );
    const taskId = called.result?.taskId;
    if (taskId === undefined) throw new Error(`tools/call: ${JSON.stringify(called).slice(0, 300)}`);
    record.taskId = taskId;
    for (;;) {
      const { result, error } = await this.ask(record, 'tasks/get', { taskId }, taskId);
      if (error) throw new Error(`tasks/get: ${error.message}`);
      if (result?.status === 'input_required') {
        await this.noteQuestion(record, taskId);
        const content = { approved: true };
        const keys = Object.keys(result.inputRequests ?? {});
        const inputResponses = Object.fromEntries(keys.map((key) => [key, { action: 'accept', content }]));
        const updated = await this.ask(record, 'tasks/update', { taskId, inputResponses }, taskId);
        if (updated.error) throw new Error(`tasks/update: ${updated.error.message}`);
      } else if (result?.status !== 'working') return void noteEnd(record, result?.result);
      await delay(RETRY_MS, undefined, { signal: this.giveUp.signal });
    }
  }

  /**
   * A client without tasks: it waits for the end, and asks on with the tool for it after the longest wait. No tool approves: a
   * person does, over A2A.
   */
  private async callOlder(record: McpRecord): Promise<void> {
    let { result, error } = await this.ask(record, 'tools/call', {
      name: CLERKS[record.server],
      arguments: { message: wordsOf(record) },
    });
    for (;;) {
      if (error) throw new Error(`tools/call: ${error.message}`);
      const state = result?._meta?.['baton/state'];
      record.taskId ??= result?._meta?.['baton/taskId'];
      if (state === 'input-required' && record.taskId !== undefined) {
        await this.noteQuestion(record, record.taskId);
        const messageId = `approve-${record.number}-${record.questions.length}`;
        await this.client.approve(CLERKS[record.server], record.taskId, messageId, this.giveUp.signal);
      } else if (state !== 'working' && state !== 'submitted') return void noteEnd(record, result);
      await delay(RETRY_MS, undefined, { signal: this.giveUp.signal });
      ({ result, error } = await this.ask(record, 'tools/call', {
        name: 'task_status',
        arguments: { taskId: record.taskId },
      }));
    }
  }

  /** One request, again until an API answers it. Every try is the same request. */
  private async ask(
    { number, client }: McpRecord,
    method: string,
    params: Record<string, unknown>,
    name?: string,
  ): Promise<McpAnswer> {
    const isModern = client === MODERN;
    const _meta = {
      ...(isModern && {
        [`${META}/protocolVersion`]: MODERN,
        [`${META}/clientCapabilities`]: { elicitation: {}, extensions: { [`${META}/tasks`]: {} } },
      }),
      'claudecode/toolUseId': `use-${number}`,
    };
    const headers = {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': client,
      ...(isModern && { 'mcp-method': method, ...(name !== undefined && { 'mcp-name': name }) }),
    };
    const body = { jsonrpc: '2.0', id: number + 1, method, params: { ...params, _meta } };
    const answer = await this.client.send('POST', '/mcp', body, headers, this.giveUp.signal);
    return answer.json as McpAnswer;
  }
}

interface ChatRequest {
  messages: { role: string; content: unknown }[];
}

interface RestList {
  tasks: { task_id: string; first_message?: string }[];
  next_cursor: string | null;
}

/** The text of a call, which its tasks and the requests to the model carry. */
const WORDS = /(?:once|again|slow) (\d+)/;
const wordsOf = ({ kind, number }: McpRecord): string => `${kind} ${number}`;

/** The model calls the tool of its input, and repeats the tool's answer. */
function replyTo({ messages }: ChatRequest) {
  const result = messages.find(({ role }) => role === 'tool');
  if (result)
    return { text: `done ${/answer \d+/.exec(JSON.stringify(result.content))?.[0] ?? 'without an answer'}` };
  const asked = messages.filter(({ role }) => role === 'user').map(({ content }) => JSON.stringify(content));
  const [, kind = '', n = ''] = /(once|again|slow) (\d+)/.exec(asked.join(' ')) ?? [];
  return { calls: [{ name: `desk_${kind}`, input: { n: Number(n) } }] };
}

function noteEnd(record: McpRecord, result: McpAnswer['result']): void {
  const state = result?._meta?.['baton/state'] ?? (result === undefined ? 'canceled' : 'completed');
  record.answered = { state, text: textOf(result?.content) };
}
