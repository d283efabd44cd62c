import { ProtocolError } from '@baton/a2a';

/** The first bytes of each body do not count: small messages are never refused for large ones. */
export const FREE_BYTES = 16_384;

/** `Retry-After` of a refused body. */
const RETRY_AFTER_SECONDS = 5;

/** What a lease needs of the pool. */
interface BodyPool {
  take(lease: BodyLease, bytes: number): void;
  give(lease: BodyLease): void;
}

/** The memory of one body until it is complete. */
export class BodyLease {
  /** Bytes that count. */
  bytes = 0;
  readonly beganAt = performance.now();
  private received = 0;

  constructor(
    private readonly pool: BodyPool,
    readonly holder: string,
    private readonly onRefused: (refusal: ProtocolError) => void,
  ) {}

  /** Counts bytes that have arrived. */
  take(bytes: number): void {
    const before = Math.max(this.received - FREE_BYTES, 0);
    this.received += bytes;
    const counted = Math.max(this.received - FREE_BYTES, 0) - before;
    if (counted > 0) this.pool.take(this, counted);
  }

  /** The body is complete, or is not read any more. */
  end(): void {
    this.pool.give(this);
  }

  /** For BodyMemoryPool alone. */
  refuse(): void {
    this.end();
    this.onRefused(noRoom());
  }
}

const noRoom = (): ProtocolError =>
  new ProtocolError(
    'overloaded',
    'too many large requests arrive at the moment: send the request again, and large content by URL',
    {
      metadata: { limit: 'bodyMemory', retryAfterSeconds: String(RETRY_AFTER_SECONDS) },
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
