import {
  type Artifact,
  answerJson,
  encodeEnvelope,
  encodeErrorEnvelope,
  eventKindOf,
  type Frame,
  type ProtocolError,
  shortened,
  sseRecord,
  type StreamItem,
} from '@baton/a2a';
import type { FastifyReply } from 'fastify';
import type { OutgoingHttpHeaders } from 'node:http';
import type { FrameWriter } from '../core/call-handler.js';
import { SseOutput, type StreamOutput } from '../streams/sse-output.js';
import { encodeMcpError } from './mcp-error.js';
import type { McpRequest } from './mcp-request.js';
import { type CallToolResult, workingResult } from './tool-result.js';

/** Maximum length of a text in a progress notification. */
const MAX_MESSAGE = 1_000;

/** The task that a tool call has made or joined. */
interface CalledTask {
  id: string;
  contextId: string;
  /** The sequence with which the stream began: 1 if the call has made the task. */
  sequence: number;
}

/** The functions of the handler that a stream needs. */
interface ToolStreamOptions {
  /** Reads the result when the turn is over, or the wait. */
  read(taskId: string): Promise<object>;
  /** A result as the client's revision has it. */
  complete(result: CallToolResult): unknown;
}

/** A tool call as a stream: its progress, and then the one answer. */
export class ToolStream implements FrameWriter {
  task: CalledTask | undefined;
  private isAnswered = false;
  private readonly artifacts = new Set<string>();

  constructor(
    private readonly reply: FastifyReply,
    private readonly request: McpRequest,
    private readonly options: ToolStreamOptions,
  ) {}

  output(): StreamOutput {
    return new ToolOutput(this.reply, (reason) => this.handle(reason));
  }

  /** A notification of progress, or nothing. */
  frame({ result }: Frame): string {
    const { sequence, payload } = result as StreamItem;
    if (payload.$case === 'task') {
      const { id, contextId } = payload.value;
      this.task ??= { id, contextId, sequence };
      return this.progress(sequence, 'accepted');
    }
    if (payload.$case === 'statusUpdate') {
      const parts = payload.value.status?.message?.parts ?? [];
      const texts = parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []));
      return this.progress(sequence, texts.join('\n') || 'working');
    }
    const { artifact } = payload.value;
    const callText = artifact && saidByCall(artifact);
    if (callText !== undefined) return this.progress(sequence, callText);
    // An artifact may come in thousands of pieces.
    if (!artifact || this.artifacts.has(artifact.artifactId)) return '';
    this.artifacts.add(artifact.artifactId);
    return this.progress(sequence, `artifact ${artifact.name || artifact.artifactId}`);
  }

  async last(): Promise<string> {
    if (!this.task) return '';
    const result = await this.options.read(this.task.id);
    return this.answer(encodeEnvelope(this.request.id, result));
  }

  error(failure: ProtocolError): string {
    return this.answer(encodeErrorEnvelope(this.request.id, encodeMcpError(failure).error));
  }

  /** The stream ends early: the client gets the id of its task. */
  private handle(reason: string): string {
    if (!this.task) return '';
    const { id, contextId } = this.task;
    const result = workingResult(id, contextId, `${reason}. `);
    return this.answer(encodeEnvelope(this.request.id, this.options.complete(result)));
  }

  /** A request has one answer. */
  private answer(envelope: object): string {
    if (this.isAnswered) return '';
    this.isAnswered = true;
    return sseRecord(answerJson(envelope), {});
  }

  private progress(progress: number, message: string): string {
    const { progressToken } = this.request.meta;
    if (typeof progressToken !== 'string' && typeof progressToken !== 'number') return '';
    const params = { progressToken, progress, message: shortened(message, MAX_MESSAGE) };
    return sseRecord(answerJson({ jsonrpc: '2.0', method: 'notifications/progress', params }), {});
  }
}

/** The content of an event about a tool call. Undefined: the artifact is not about a call. */
function saidByCall(artifact: Artifact): string | undefined {
  const kind = eventKindOf(artifact);
  if (kind !== 'tool-start' && kind !== 'tool-progress') return undefined;
  const content = artifact.parts[0]?.content;
  const { message } = (content?.$case === 'data' ? content.value : {}) as { message?: unknown };
  return typeof message === 'string' ? `${artifact.name}: ${message}` : `calls ${artifact.name}`;
}

/** Server-sent events that end with an answer also if they end early. */
class ToolOutput extends SseOutput {
  constructor(
    reply: FastifyReply,
    private readonly handle: (reason: string) => string,
  ) {
    super(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
    reply.hijack();
  }

  override explain(reason: string): string {
    return this.handle(reason);
  }
}
