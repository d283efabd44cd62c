import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiAddress, Credentials } from './caller.js';
import type { LedgerEntry } from './observations.js';

export const RETRY_MS = 300;
/** How long a request may take: calls of older clients of MCP wait for the end of their task. */
const ANSWER_MS = 60_000;
/** JSON-RPC: a fault of the moment. */
const UNAVAILABLE = -32603;

/** A task as `GET /v1/tasks/{id}` shows it, as far as it is judged. */
export interface RestTask {
  state: string;
  agent_version: number | null;
  parked?: { problem: string } | null;
  runs: { attempt: number }[];
  task: {
    artifacts?: { metadata?: Record<string, unknown>; parts: { text?: string }[] }[];
    status?: { message?: { parts: { text?: string }[] } };
  };
}

interface RestEffect {
  name: string;
  key: string | null;
  outcome: string;
  unknown_outcome?: string;
  attempts: number;
  ended_at: string | null;
}

/** What a request came to: the HTTP status, and the JSON. */
interface Answer {
  status: number;
  json: unknown;
}

/** Sends each request again, on one API after another, until one answers it. Every try is the same request. */
export class RetryingClient {
  private turn = 0;

  constructor(
    private readonly apis: () => Promise<readonly ApiAddress[]>,
    private readonly who: Credentials,
  ) {}

  /** @param giveUp rejects when it aborts */
  async send(
    method: string,
    path: string,
    body: object | undefined,
    headers: Record<string, string>,
    giveUp: AbortSignal,
  ): Promise<Answer> {
    for (;;) {
      const apis = await this.apis();
      const api = apis[this.turn++ % apis.length];
      const answer =
        api &&
        (await fetch(`${api.url}${path}`, {
          method,
          headers: {
            authorization: `Bearer ${this.who.token}`,
            'x-request-id': randomUUID(),
            ...(body && { 'content-type': 'application/json' }),
            ...headers,
          },
          signal: AbortSignal.any([giveUp, AbortSignal.timeout(ANSWER_MS)]),
          ...(body && { body: JSON.stringify(body) }),
        })
          .then(async (response) => ({ status: response.status, text: await response.text() }))
          .catch(() => undefined));
      giveUp.throwIfAborted();
      if (answer && answer.status < 500 && answer.status !== 429) {
        const json = answer.status === 204 ? {} : jsonOf(answer.text);
        if (json !== undefined) return { status: answer.status, json };
      }
      await delay(RETRY_MS, undefined, { signal: giveUp });
    }
  }

  /** Rejects if it is refused. */
  async read(path: string, giveUp: AbortSignal): Promise<unknown> {
    const { status, json } = await this.send('GET', path, undefined, {}, giveUp);
    if (status >= 400) throw new Error(`GET ${path}: ${JSON.stringify(json).slice(0, 300)}`);
    return json;
  }

  async task(id: string, giveUp: AbortSignal): Promise<RestTask> {
    return (await this.read(`/v1/tasks/${id}`, giveUp)) as RestTask;
  }

  /** What the ledger has of a task. */
  async effects(task: string, giveUp: AbortSignal): Promise<LedgerEntry[]> {
    const { effects } = (await this.read(`/v1/effects?task=${task}`, giveUp)) as { effects: RestEffect[] };
    return effects.map(({ name, key, outcome, unknown_outcome: decision, attempts, ended_at: endedAt }) => ({
      name,
      key,
      outcome,
      ...(decision !== undefined && { decision }),
      attempts,
      ...(endedAt !== null && { endedAt: Date.parse(endedAt) }),
    }));
  }

  /** Sends a message over A2A. The same message never makes two turns. @returns the id of its task */
  async message(
    agent: string,
    message: { messageId: string; taskId?: string; parts: object[] },
    giveUp: AbortSignal,
  ): Promise<string> {
    const params = {
      message: { role: 'ROLE_USER', ...message },
      configuration: { returnImmediately: true },
    };
    const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params };
    for (;;) {
      const sent = await this.send('POST', `/agents/${agent}`, body, { 'a2a-version': '1.0' }, giveUp);
      const { result, error } = sent.json as {
        result?: { task?: { id: string } };
        error?: { code: number; message: string };
      };
      if (result?.task) return result.task.id;
      if (error?.code !== UNAVAILABLE)
        throw new Error(`SendMessage: ${JSON.stringify(sent.json).slice(0, 300)}`);
      await delay(RETRY_MS, undefined, { signal: giveUp });
    }
  }

  /** Says yes to all calls of a task that wait for a person. */
  async approve(agent: string, taskId: string, messageId: string, giveUp: AbortSignal): Promise<void> {
    await this.message(
      agent,
      { messageId, taskId, parts: [{ data: { approval: { approved: true } } }] },
      giveUp,
    );
  }
}

/** How often workers have claimed the runs of a task, beyond once each. */
export const retriesOf = ({ runs }: RestTask): number =>
  runs.reduce((sum, { attempt }) => sum + Math.max(0, attempt - 1), 0);

/** What a task has answered, without the artifacts of its calls. */
export const answerOf = ({ task }: RestTask): string =>
  textOf(task.artifacts?.filter(isReply).flatMap(({ parts }) => parts) ?? task.status?.message?.parts);

export const textOf = (parts: readonly { text?: string }[] = []): string =>
  parts.map(({ text = '' }) => text).join('');

const isReply = ({ metadata }: { metadata?: Record<string, unknown> }): boolean =>
  metadata?.['baton.event'] === undefined;

/** The body of an answer: JSON, or the last event of a stream, which is whole. Undefined: it broke off. */
function jsonOf(text: string): unknown {
  const data = text.startsWith('{')
    ? text
    : (text
        .match(/^data: .*$/gm)
        ?.at(-1)
        ?.slice(6) ?? '');
  try {
    const json = JSON.parse(data) as { method?: unknown };
    return json.method === undefined ? json : undefined;
  } catch {
    return undefined;
  }
}
