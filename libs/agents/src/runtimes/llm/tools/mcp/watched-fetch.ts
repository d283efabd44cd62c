import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { OutboundRefused } from '../../../../outbound/outbound-refused.js';

const encoder = new TextEncoder();

/**
 * The fetch of an MCP connection. The SDK leaves a request without an answer until it times out when the stream
 * of its response ends early: here such a stream gets an error response as its last event. It also knows which
 * notifications are still on their way.
 */
export class WatchedFetch {
  private readonly notifying = new Set<Promise<unknown>>();

  constructor(private readonly send: FetchLike) {}

  /** Resolves when the notifications that were sent have arrived or failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.notifying);
  }

  readonly fetch: FetchLike = async (url, init) => {
    const sending = this.send(url, init);
    const id = requestId(init);
    if (init?.method === 'POST' && id === undefined) this.follow(sending);
    const response = await sending;
    const { body, status, headers } = response;
    const isStream = headers.get('content-type')?.startsWith('text/event-stream');
    if (id === undefined || !response.ok || !body || !isStream) return response;
    return new Response(ReadableStream.from(withAnswer(body, id)), { status, headers });
  };

  private follow(sending: Promise<unknown>): void {
    this.notifying.add(sending);
    const done = (): boolean => this.notifying.delete(sending);
    sending.then(done, done);
  }
}

type RequestId = string | number;

/** A stream that answers a request, and does so in any case. */
async function* withAnswer(body: ReadableStream<Uint8Array>, id: RequestId): AsyncGenerator<Uint8Array> {
  let resumable = false;
  let reason = 'the connection ended before the answer';
  try {
    for await (const chunk of body) {
      // A stream whose events have ids can be taken up again, which the SDK does.
      resumable ||= /^id:/m.test(Buffer.from(chunk).toString('latin1'));
      yield chunk;
    }
  } catch (error) {
    if (resumable) throw error;
    if (error instanceof OutboundRefused) reason = error.message;
  }
  if (resumable) return;
  const error = { code: ErrorCode.ConnectionClosed, message: reason };
  yield encoder.encode(`\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, error })}\n\n`);
}

function requestId(init: RequestInit | undefined): RequestId | undefined {
  if (typeof init?.body !== 'string') return undefined;
  // oxlint-disable-next-line no-restricted-properties -- written by the SDK of this process
  const { id, method } = JSON.parse(init.body) as { id?: RequestId; method?: string };
  return method === undefined ? undefined : id;
}
