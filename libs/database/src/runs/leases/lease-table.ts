import { type LeaseKey, type LostLease, nameOf } from './lease-key.js';

// A lease is written as three numbers (its mark, which is 0 while the place is free; the attempt; the length of the text) and a
// text, the ids of the tenant and the run.
const WORDS = 24;
const TEXT_AT = 3 * Int32Array.BYTES_PER_ELEMENT;
const LEASE_BYTES = WORDS * Int32Array.BYTES_PER_ELEMENT;

/** Leases of one buffer. */
const ROOM = 128;
const MAX_MARK = 2 ** 31 - 1;

interface Room {
  buffer: SharedArrayBuffer;
  words: Int32Array;
  bytes: Buffer<SharedArrayBuffer>;
}

const roomIn = (buffer: SharedArrayBuffer): Room => ({
  buffer,
  words: new Int32Array(buffer),
  bytes: Buffer.from(buffer),
});

/**
 * The leases of a process, in memory that its threads share: what the main thread writes, the other reads at its next beat,
 * also if the main thread is blocked from then on. No message is sent for a run: two for each cost a tenth of a worker's time.
 */
export class LeaseTable {
  private readonly rooms: Room[] = [];
  private readonly places = new Map<string, number>();
  private readonly free: number[] = [];
  private mark = 0;

  /** @param grown called with each further buffer */
  constructor(private readonly grown: (buffer: SharedArrayBuffer) => void = () => undefined) {}

  get buffers(): SharedArrayBuffer[] {
    return this.rooms.map(({ buffer }) => buffer);
  }

  hold({ tenantId, runId, attempt }: LeaseKey): void {
    const name = nameOf({ runId, attempt });
    const text = `${tenantId} ${runId}`;
    // No run has longer ids: the claim finds nothing.
    if (this.places.has(name) || text.length > LEASE_BYTES - TEXT_AT) return;
    const place = this.free.pop() ?? this.grow();
    this.places.set(name, place);
    const { words, bytes } = this.roomOf(place);
    const at = (place % ROOM) * WORDS;
    words[at + 1] = attempt;
    words[at + 2] = bytes.write(text, (place % ROOM) * LEASE_BYTES + TEXT_AT, 'latin1');
    this.mark = (this.mark % MAX_MARK) + 1;
    Atomics.store(words, at, this.mark);
  }

  release(key: LostLease): void {
    const name = nameOf(key);
    const place = this.places.get(name);
    if (place === undefined) return;
    this.places.delete(name);
    Atomics.store(this.roomOf(place).words, (place % ROOM) * WORDS, 0);
    this.free.push(place);
  }

  private roomOf(place: number): Room {
    const room = this.rooms[Math.floor(place / ROOM)];
    if (!room) throw new RangeError('No such place');
    return room;
  }

  /** @returns a free place */
  private grow(): number {
    const first = this.rooms.length * ROOM;
    const room = roomIn(new SharedArrayBuffer(ROOM * LEASE_BYTES));
    this.rooms.push(room);
    this.grown(room.buffer);
    for (let place = first + ROOM - 1; place > first; place--) this.free.push(place);
    return first;
  }
}

/** The leases that a `LeaseTable` of another thread holds at this moment. */
export function readLeases(buffers: readonly SharedArrayBuffer[]): LeaseKey[] {
  return buffers.flatMap((buffer) => {
    const room = roomIn(buffer);
    return Array.from({ length: ROOM }, (_, place) => readLease(room, place)).filter(
      (key) => key !== undefined,
    );
  });
}

function readLease({ words, bytes }: Room, place: number): LeaseKey | undefined {
  for (;;) {
    const at = place * WORDS;
    const mark = Atomics.load(words, at);
    if (mark === 0) return undefined;
    const [attempt = 0, length = 0] = words.subarray(at + 1, at + 3);
    const from = place * LEASE_BYTES + TEXT_AT;
    const [tenantId = '', runId = ''] = bytes.toString('latin1', from, from + length).split(' ');
    // Another mark: the place was given to another lease meanwhile.
    if (Atomics.load(words, at) === mark) return { tenantId, runId, attempt };
  }
}
