import { stateNamed, StreamResponse, TaskState } from '@baton/a2a';
import type { TenantPaths, TenantSchemas } from '@baton/contract';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { answerOf, listAll, type ServerOptions, type TenantApi, tenantApi } from '../api.js';
import type { NumberedEvent } from '../call/agent-client.js';
import type { Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { OperatorError } from '../operator-error.js';
import { RefusedError } from '../refused-error.js';
import type { CallDetail, Trace } from './print-trace.js';

/** Which tasks to list. */
type TaskQuery = NonNullable<TenantPaths['/v1/tasks']['get']['parameters']['query']>;

type EffectQuery = NonNullable<TenantPaths['/v1/effects']['get']['parameters']['query']>;

/** The tasks of a tenant at a server that the token may read. Every error is an OperatorError. */
export class TasksClient {
  constructor(private readonly api: TenantApi) {}

  /** The newest status first. @param max how many are wanted */
  list(filter: TaskQuery, max: number): Promise<TenantSchemas['TaskSummary'][]> {
    return listAll(
      (page) => this.api.GET('/v1/tasks', { params: { query: { ...filter, ...page } } }),
      ({ tasks }) => tasks,
      max,
    );
  }

  /** Effects of tasks outside of Baton. @param max how many are wanted, at least */
  effects(filter: EffectQuery, max: number): Promise<TenantSchemas['Effect'][]> {
    return listAll(
      (page) => this.api.GET('/v1/effects', { params: { query: { ...filter, ...page } } }),
      ({ effects }) => effects,
      max,
    );
  }

  async get(id: string): Promise<TenantSchemas['Task']> {
    return answerOf(this.api.GET('/v1/tasks/{id}', { params: { path: { id } } })).catch(noSuchTask(id));
  }

  /** What the agent's code has written to its console during the task. @param after position of the last known line */
  async *consoleOf(id: string, after: number): AsyncGenerator<TenantSchemas['ConsoleLine']> {
    let cursor: string | null = after === 0 ? '' : Buffer.from(String(after)).toString('base64url');
    while (cursor !== null) {
      const params = { path: { id }, query: { limit: 100, cursor } };
      const page: { lines: TenantSchemas['ConsoleLine'][]; next_cursor: string | null } = await answerOf(
        this.api.GET('/v1/tasks/{id}/logs', { params }),
      ).catch(noSuchTask(id));
      yield* page.lines;
      cursor = page.next_cursor;
    }
  }

  async stateOf(id: string): Promise<TaskState> {
    const { state = '' } = await this.get(id);
    return stateNamed(state) ?? TaskState.TASK_STATE_UNSPECIFIED;
  }

  /** The events of a task after a sequence, until it has ended or waits for its caller. */
  async *subscribe(id: string, after: number): AsyncGenerator<NumberedEvent> {
    const params = { path: { id }, query: { since_seq: after } };
    const body = await answerOf(this.api.GET('/v1/tasks/{id}/events', { params, parseAs: 'stream' })).catch(
      noSuchTask(id),
    );
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
    const params = { path: { id }, query: { since_seq: after } };
    const page = await answerOf(this.api.GET('/v1/tasks/{id}/event-times', { params })).catch(
      (error: unknown): undefined => {
        if (!(error instanceof RefusedError) || error.status !== 404) throw error;
      },
    );
    return page && new Map(page.times.map(({ seq, at }) => [seq, new Date(at)]));
  }

  /** What happened in a task, and how long each part took. */
  trace(id: string): Promise<Trace> {
    return answerOf(this.api.GET('/v1/tasks/{id}/trace', { params: { path: { id } } })).catch(noSuchTask(id));
  }

  /** The output of a model or tool call. @param entry of its span */
  call(id: string, entry: number): Promise<CallDetail> {
    const params = { path: { id, entry: String(entry) } };
    return answerOf(this.api.GET('/v1/tasks/{id}/trace/{entry}', { params })).catch(noSuchTask(id));
  }

  /** The request and the answer of a model call. Null: nothing is recorded. @param entry of its span */
  async callRecord(id: string, entry: number): Promise<TenantSchemas['CallRecord'] | null> {
    const params = { path: { id, entry: String(entry) } };
    return (await answerOf(this.api.GET('/v1/tasks/{id}/trace/{entry}/record', { params }))).record;
  }

  /** @throws OperatorError, also if the task cannot be canceled */
  async cancel(id: string): Promise<void> {
    await answerOf(this.api.POST('/v1/tasks/{id}/cancel', { params: { path: { id } } })).catch(
      noSuchTask(id),
    );
  }

  /** @throws OperatorError, also if the task is not parked */
  async resume(id: string): Promise<void> {
    await answerOf(this.api.POST('/v1/tasks/{id}/resume', { params: { path: { id } } })).catch(
      noSuchTask(id),
    );
  }

  /** @returns the new task */
  sendAgain(id: string): Promise<TenantSchemas['SentAgain']> {
    return answerOf(this.api.POST('/v1/tasks/{id}/send-again', { params: { path: { id } } })).catch(
      noSuchTask(id),
    );
  }

  /** Continues a failed task where it has failed. @returns the new task */
  continueTask(id: string): Promise<TenantSchemas['Continuation']> {
    return answerOf(this.api.POST('/v1/tasks/{id}/continue', { params: { path: { id } } })).catch(
      noSuchTask(id),
    );
  }

  /** Makes a fork of a task, or lists what it would do again. */
  fork(id: string, body: TenantSchemas['NewFork']): Promise<TenantSchemas['Fork']> {
    return answerOf(this.api.POST('/v1/tasks/{id}/fork', { params: { path: { id } }, body })).catch(
      noSuchTask(id),
    );
  }

  /** The slugs of the agents that the caller may list, by their ids. Empty, if it may list none. */
  async slugs(): Promise<Map<string, string>> {
    const agents = await listAll(
      (query) => this.api.GET('/v1/agents', { params: { query } }),
      (page) => page.agents,
    ).catch((error: unknown) => {
      if (error instanceof RefusedError && error.status === 403) return [];
      throw error;
    });
    return new Map(agents.map(({ id, slug }) => [id ?? slug, slug]));
  }
}

/** The client for the server and token of the options. */
export const tasksClient = (cli: Cli, options: ServerOptions): TasksClient =>
  new TasksClient(tenantApi(cli, options));

/** A record of a task as data. `request_id` is its old name for the id of the task. */
export const taskRecord = <Record extends { task_id: string }>(record: Record) => ({
  ...record,
  request_id: record.task_id,
});

const errorIn = (data: string): string => {
  const { error } = JSON.parse(data) as { error: { message: string } };
  return `The server answers: ${error.message.replace(/\.$/, '')}.`;
};

/** A refused cancel is a 404 as well, with the reason. */
const noSuchTask =
  (id: string) =>
  (error: unknown): never => {
    if (!(error instanceof RefusedError) || error.status !== 404) throw error;
    if (!/^task not found/i.test(error.reason)) throw new OperatorError(`Task ${id}: ${error.reason}.`);
    throw new NotFoundError(
      `There is no task "${id}", or your token does not see it: npx baton tasks list shows those that it sees.`,
    );
  };
