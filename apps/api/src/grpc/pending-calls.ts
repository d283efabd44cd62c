import { constants, type ServerHttp2Stream } from 'node:http2';

/** Maximum calls of one address whose message has not arrived. A proxy sends the calls of many clients. */
const PENDING_OF_ADDRESS = 1_024;
/** Maximum calls of all addresses whose message has not arrived: one address can take half of them. */
const PENDING_CALLS = 2_048;

/**
 * Bounds the calls whose message is not complete. A call takes about 20 KB, and its peer may be silent until the time for requests has passed. If
 * there are too many, the one that waits longest is refused with REFUSED_STREAM, after which a client may send it again: the message of an
 * honest call comes with its headers.
 */
export class PendingCalls {
  /** What takes each of them out, those that wait longest first. */
  private readonly all = new Map<ServerHttp2Stream, () => void>();
  private readonly byAddress = new Map<unknown, Set<ServerHttp2Stream>>();

  /** @param onRefused called when a call is refused */
  constructor(private readonly onRefused: (stream: ServerHttp2Stream) => void) {}

  /** @param address of the caller; behind a proxy that is trusted, what stands for its connection */
  add(stream: ServerHttp2Stream, address: unknown): void {
    const ofAddress = this.byAddress.get(address) ?? new Set();
    this.byAddress.set(address, ofAddress.add(stream));
    const leave = (): void => {
      this.all.delete(stream);
      ofAddress.delete(stream);
      if (ofAddress.size === 0 && this.byAddress.get(address) === ofAddress) this.byAddress.delete(address);
    };
    this.all.set(stream, leave);
    stream.once('end', leave).once('close', leave);
    if (ofAddress.size > PENDING_OF_ADDRESS) this.refuseFirst(ofAddress);
    else if (this.all.size > PENDING_CALLS) this.refuseFirst(this.all.keys());
  }

  private refuseFirst([first]: Iterable<ServerHttp2Stream>): void {
    if (!first) return;
    this.all.get(first)?.();
    this.onRefused(first);
    first.close(constants.NGHTTP2_REFUSED_STREAM);
  }
}
