import { stateNamed, StreamResponse, TaskState } from '@baton/a2a';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { NumberedEvent } from '../call/agent-client.js';
import { NotFoundError } from '../not-found-error.js';
import { OperatorError } from '../operator-error.js';
import type { RunErrorJson } from '../operator/remote-operations.js';
import { type ApiClient } from '../api-client.js';
import { RefusedError } from '../refused-error.js';

/** A task in a list. */
export interface RequestJson {
  request_id: string;
  agent_id: string;
  context_id: string;
  state?: string;
  updated_at?: string;
  created_at?: string;
  /** Text of its status. */
  status_message?: string;
  /** The calls that wait for a person. */
  approvals?: ApprovalJson[];
}

export interface ApprovalJson {
  call_id: string;
  tool: string;
  description: string;
  input: unknown;
  expires_at?: string;
}

/** A durable step of an agent in code. */
export interface StepJson {
  name: string;
  kind: string;
  state: string;
  attempts: number;
  started_at: string;
  ended_at: string | null;
  error: string | null;
}

/** A line that the code of an agent has written to its console. */
export interface ConsoleLineJson {
  position: number;
  at: string;
  level: string;
  run_id: string;
  attempt: number;
  text: string;
}

/** A call of a model. */
export interface ModelCallJson {
  attempt: number;
  at: string | null;
  ms: number | null;
  model: string;
  finish: string | null;
  /** Unset: the server is of an earlier release. */
  provider_finish?: string | null;
  input_tokens: number;
  output_tokens: number;
  cost: number | null;
  tools: string[];
  /** Unset: the server is of an earlier release. */
  tools_not_made?: boolean;
  error: string | null;
}

/** One task. */
export interface WholeRequestJson extends RequestJson {
  owner: string | null;
  agent_version: number | null;
  parent_id: string | null;
  child_ids: string[];
  events: number;
  /** The newest first. */
  runs?: { state: string; worker_id: string | null }[];
  task: Record<string, unknown>;
  error: RunErrorJson | null;
  /** Unset: the server is of an earlier release. */
  model_calls?: ModelCallJson[];
  currency?: string | null;
  /** Only for tokens that may change agents. Unset: the server is of an earlier release. */
  steps?: StepJson[];
}

/** The tasks of a tenant at a server, as its token sees them. Every error is an OperatorError. */
export class RequestsClient {
  constructor(private readonly api: ApiClient) {}

  /** The newest status first. @param max how many are wanted */
  list(query: Record<string, string>, max: number): Promise<RequestJson[]> {
    return this.api.list<RequestJson>('requests', 'requests', query, max);
  }

  async get(id: string): Promise<WholeRequestJson> {
    return this.api.call<WholeRequestJson>('GET', pathOf(id)).catch(noSuchTask(id));
  }

  /** What the agent's code has written to its console during the task. @param after position of the last known line */
  async *consoleOf(id: string, after = 0): AsyncGenerator<ConsoleLineJson> {
    type Page = { lines: ConsoleLineJson[]; next_cursor: string | null };
    let cursor = after === 0 ? '' : Buffer.from(String(after)).toString('base64url');
    for (;;) {
      const path = `${pathOf(id)}/logs?limit=100&cursor=${cursor}`;
      const page = await this.api.call<Page>('GET', path).catch(noSuchTask(id));
      yield* page.lines;
      if (page.next_cursor === null) return;
      cursor = page.next_cursor;
    }
  }

  async stateOf(id: string): Promise<TaskState> {
    const { state = '' } = await this.get(id);
    return stateNamed(state) ?? TaskState.TASK_STATE_UNSPECIFIED;
  }

  /** The events of a task after a sequence, until it has ended or waits for its caller. */
  async *subscribe(id: string, after: number): AsyncGenerator<NumberedEvent> {
    const path = `${pathOf(id)}/events?since_seq=${String(after)}`;
    const { body } = await this.api.open('GET', path).catch(noSuchTask(id));
    if (!body) return;
    const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    for await (const { event, data } of events) {
      if (event === 'error') throw new OperatorError(errorIn(data));
      const { seq, ...item } = JSON.parse(data) as { seq: number };
      const { payload } = StreamResponse.fromJSON(item);
      if (payload) yield { sequence: seq, payload };
    }
  }

  /**
   * When events were stored, by their sequence: the next ones after a sequence, up to 1,000. Undefined: the server is
   * of an earlier release.
   */
  async eventTimes(id: string, after: number): Promise<Map<number, Date> | undefined> {
    type Page = { times: { seq: number; at: string }[] };
    const path = `${pathOf(id)}/event-times?since_seq=${String(after)}`;
    const page = await this.api.call<Page>('GET', path).catch((error: unknown): undefined => {
      if (!(error instanceof RefusedError) || error.status !== 404) throw error;
    });
    return page && new Map(page.times.map(({ seq, at }) => [seq, new Date(at)]));
  }

  /** @throws OperatorError, also if the task cannot be canceled */
  async cancel(id: string): Promise<void> {
    await this.api.call('POST', `${pathOf(id)}/cancel`).catch(noSuchTask(id));
  }

  /** @returns the new task */
  sendAgain(id: string): Promise<RequestJson & { again_of: string }> {
    return this.api
      .call<RequestJson & { again_of: string }>('POST', `${pathOf(id)}/send-again`)
      .catch(noSuchTask(id));
  }

  /** The slugs of the agents that the caller may list, by their ids. Empty, if it may list none. */
  async slugs(): Promise<Map<string, string>> {
    type AgentJson = { id?: string; slug: string };
    const agents = await this.api.list<AgentJson>('agents', 'agents').catch((error: unknown) => {
      if (error instanceof RefusedError && error.status === 403) return [];
      throw error;
    });
    return new Map(agents.map(({ id, slug }) => [id ?? slug, slug]));
  }
}

const pathOf = (id: string): string => `requests/${encodeURIComponent(id)}`;

const errorIn = (data: string): string => {
  const { error } = JSON.parse(data) as { error: { message: string } };
  return `The server answers: ${error.message.replace(/\.$/, '')}.`;
};

/** A cancel that is refused is a 404 as well, and says why. */
const noSuchTask =
  (id: string) =>
  (error: unknown): never => {
    if (!(error instanceof RefusedError) || error.status !== 404) throw error;
    if (!/^task not found/i.test(error.reason)) throw new OperatorError(`Task ${id}: ${error.reason}.`);
    throw new NotFoundError(
      `There is no task "${id}", or your token does not see it: npx baton tasks list shows those that it sees.`,
    );
  };
