import {
  answerJson,
  encodeEnvelope,
  encodeErrorEnvelope,
  ProtocolError,
  sseRecord,
  type StreamItem,
  type Task,
} from '@baton/a2a';
import type { FastifyReply } from 'fastify';
import type { OutgoingHttpHeaders } from 'node:http';
import type { StreamRecord } from '../streams/event-stream.js';
import { SseOutput, type StreamOutput } from '../streams/sse-output.js';
import { encodeMcpError } from './mcp-error.js';
import type { McpRequest } from './mcp-request.js';

/** Tasks of one subscription. */
export const MAX_TASKS = 64;

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

/** The stream of a subscription: the acknowledgment, a notification for each change of a task, and the result when all have ended. */
export class TaskNotices {
  private isAcknowledged = false;
  private isAnswered = false;

  /** @param detail the task as `notifications/tasks` shows it */
  constructor(
    private readonly reply: FastifyReply,
    private readonly request: McpRequest,
    private readonly taskIds: readonly string[],
    private readonly detail: (task: Task) => Record<string, unknown>,
  ) {}

  readonly output = (): StreamOutput => new NoticesOutput(this.reply, () => this.result());

  readonly item = ({ sequence, payload }: StreamItem): StreamRecord[] => {
    if (payload.$case !== 'task') return [];
    const { _meta: _, ...task } = this.detail(payload.value);
    return [{ sequence, data: this.acknowledged() + this.notification('notifications/tasks', task) }];
  };

  readonly last = async (): Promise<string> => this.acknowledged() + this.result();

  readonly error = (failure: ProtocolError): string =>
    this.answer(encodeErrorEnvelope(this.request.id, encodeMcpError(failure).error));

  /** The first message of every subscription; later nothing. */
  private acknowledged(): string {
    if (this.isAcknowledged) return '';
    this.isAcknowledged = true;
    const taskIds = this.taskIds.length > 0 ? { taskIds: this.taskIds } : {};
    return this.notification('notifications/subscriptions/acknowledged', { notifications: taskIds });
  }

  private notification(method: string, params: Record<string, unknown>): string {
    const message = { jsonrpc: '2.0', method, params: { ...params, _meta: this.meta() } };
    return sseRecord(answerJson(message), {});
  }

  private result(): string {
    return this.answer(encodeEnvelope(this.request.id, { resultType: 'complete', _meta: this.meta() }));
  }

  private answer(envelope: object): string {
    if (this.isAnswered) return '';
    this.isAnswered = true;
    return sseRecord(answerJson(envelope), {});
  }

  private meta(): Record<string, unknown> {
    return { [SUBSCRIPTION]: this.request.id };
  }
}

/** Server-sent events that end with the result also if the server shuts down. */
class NoticesOutput extends SseOutput {
  constructor(
    reply: FastifyReply,
    private readonly result: () => string,
  ) {
    super(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
    reply.hijack();
  }

  override explain(): string {
    return this.result();
  }
}
