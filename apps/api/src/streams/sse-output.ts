import type { FastifyReply } from 'fastify';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

/**
 * A record as it goes out. Texts are joined, and sent in pieces of one size. Bytes go out one by one and whole: they are the
 * messages of a protocol that frames them itself.
 */
export type RecordData = string | Buffer;

/** The way to the reader of one stream: an HTTP response, or a gRPC call. */
export interface StreamOutput {
  /** What keeps an idle connection busy; undefined: the protocol does. */
  readonly heartbeat: RecordData | undefined;
  readonly destroyed: boolean;
  /** Takes the headers, which go out with the first bytes. @param onClose called once, when nothing more can be sent */
  open(onClose: () => void): void;
  /** Sends the headers alone: there is nothing yet to go with them. */
  flush(): void;
  /** @param onTaken called when the reader has taken it */
  write(bytes: Buffer, onTaken: () => void): void;
  /** Gives the reader the reason why the stream ends early. @returns the record with the reason, if the protocol has one */
  explain(reason: string): RecordData | undefined;
  /** Nothing follows. Goes out with the last bytes, if they are written in the same turn of the event loop. */
  end(): void;
  destroy(): void;
}

/** A stream as server-sent events on a raw response. */
export class SseOutput implements StreamOutput {
  readonly heartbeat: string;

  /** @param commentEnd what ends a comment, see `Framing.commentEnd` */
  constructor(
    private readonly response: ServerResponse,
    private readonly headers: OutgoingHttpHeaders,
    private readonly commentEnd: string = '\n',
  ) {
    this.heartbeat = `: heartbeat${commentEnd}`;
  }

  /** Takes the reply out of Fastify's hands, with the headers that it has. */
  static hijack(reply: FastifyReply, commentEnd?: string): SseOutput {
    const headers = reply.getHeaders() as OutgoingHttpHeaders;
    reply.hijack();
    return new SseOutput(reply.raw, headers, commentEnd);
  }

  get destroyed(): boolean {
    return this.response.destroyed;
  }

  open(onClose: () => void): void {
    const { response } = this;
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      ...this.headers,
    });
    response.once('close', onClose);
    // A broken connection also closes the response, and that is handled there.
    response.on('error', () => undefined);
  }

  flush(): void {
    this.response.flushHeaders();
  }

  write(bytes: Buffer, onTaken: () => void): void {
    this.response.write(bytes, onTaken);
  }

  explain(reason: string): string {
    return `: closed: ${reason}${this.commentEnd}`;
  }

  end(): void {
    this.response.end();
  }

  destroy(): void {
    this.response.destroy();
  }
}
