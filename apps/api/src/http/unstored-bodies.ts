import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { FREE_BYTES } from './body-lease.js';
import { HolderBytes } from './holder-bytes.js';

/** Part of `BODY_TOTAL_BYTES` for all holders. A parsed message takes several times its bytes. */
const TOTAL_SHARE = 0.5;
/** Part for one holder: as much as Postgres gets of one tenant at the same time. */
const HOLDER_SHARE = 0.0625;

/** A body that is complete. */
interface Body {
  readonly holder: string;
  readonly bytes: number;
}

interface WaitingBody extends Body {
  readonly begin: () => void;
}

/**
 * The memory of this process for messages that are not stored yet. A body waits here, unparsed, while too many bytes of its holder are on
 * their way to Postgres, which may be slow. `BodyMemoryPool` counts it until then. A holder is the same as there. One body of a holder
 * always has room.
 */
@Injectable()
export class UnstoredBodies {
  private readonly total: number;
  private readonly maxOfHolder: number;
  private readonly taken = new HolderBytes();
  private readonly held = new WeakMap<object, Body>();
  /** Oldest first. */
  private waiting: WaitingBody[] = [];

  constructor({ bodyTotalBytes }: Environment) {
    this.total = bodyTotalBytes * TOTAL_SHARE;
    this.maxOfHolder = bodyTotalBytes * HOLDER_SHARE;
  }

  /**
   * Resolves when the body of a request may be parsed. `release` must follow, whatever becomes of the request. Small bodies never wait
   * for large ones.
   */
  async hold(request: object, holder: string, bytes: number): Promise<void> {
    if (bytes <= FREE_BYTES) return;
    const body = { holder, bytes };
    const isNext = !this.waiting.some((other) => other.holder === holder);
    if (isNext && this.hasRoom(body)) this.taken.add(holder, bytes);
    else await new Promise<void>((begin) => this.waiting.push({ ...body, begin }));
    this.held.set(request, body);
  }

  /** The message of a request is stored, or will not be. May be called several times. */
  release(request: object): void {
    const body = this.held.get(request);
    if (!body) return;
    this.held.delete(request);
    this.taken.add(body.holder, -body.bytes);
    this.serve();
  }

  private hasRoom({ holder, bytes }: Body): boolean {
    const [ofHolder, ofAll] = [this.taken.bytesOf(holder), this.taken.total];
    if (ofHolder > 0 && ofHolder + bytes > this.maxOfHolder) return false;
    return ofAll === 0 || ofAll + bytes <= this.total;
  }

  /** Lets waiting bodies begin. The bodies of one holder keep their order. */
  private serve(): void {
    const full = new Set<string>();
    this.waiting = this.waiting.filter((body) => {
      if (full.has(body.holder) || !this.hasRoom(body)) {
        full.add(body.holder);
        return true;
      }
      this.taken.add(body.holder, body.bytes);
      body.begin();
      return false;
    });
  }
}
