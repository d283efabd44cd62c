import { type LeaseKey, type LostLease, nameOf } from './lease-key.js';

// A slot holds one lease: its version, the attempt, the length of a text, and that text, the ids of the tenant and the run. The
// version is 0 while the slot is free, and differs for each lease: a reader that sees the same version before and after has read one
// lease (a seqlock).
const WORDS = 24;
const TEXT_AT = 3 * Int32Array.BYTES_PER_ELEMENT;
const SLOT_BYTES = WORDS * Int32Array.BYTES_PER_ELEMENT;

/** Slots of one buffer. */
const SLOTS = 128;
/** The largest value of a word of the buffer. */
const MAX_VERSION = 2 ** 31 - 1;

interface Block {
  buffer: SharedArrayBuffer;
  words: Int32Array;
  bytes: Buffer<SharedArrayBuffer>;
}

const blockIn = (buffer: SharedArrayBuffer): Block => ({
  buffer,
  words: new Int32Array(buffer),
  bytes: Buffer.from(buffer),
});

/**
 * The leases of a process, in memory that its threads share: what the main thread writes, the other reads at its next beat,
 * also if the main thread is blocked from then on. No message is sent for a run: two for each cost a tenth of a worker's time.
 */
export class LeaseTable {
  private readonly blocks: Block[] = [];
  private readonly slots = new Map<string, number>();
  private readonly free: number[] = [];
  private version = 0;

  /** @param grown called with each further buffer */
  constructor(private readonly grown: (buffer: SharedArrayBuffer) => void = () => undefined) {}

  get buffers(): SharedArrayBuffer[] {
    return this.blocks.map(({ buffer }) => buffer);
  }

  hold({ tenantId, runId, attempt }: LeaseKey): void {
    const name = nameOf({ runId, attempt });
    const text = `${tenantId} ${runId}`;
    // No run has longer ids: the claim finds nothing.
    if (this.slots.has(name) || text.length > SLOT_BYTES - TEXT_AT) return;
    const slot = this.free.pop() ?? this.grow();
    this.slots.set(name, slot);
    const { words, bytes } = this.blockOf(slot);
    const at = (slot % SLOTS) * WORDS;
    words[at + 1] = attempt;
    words[at + 2] = bytes.write(text, (slot % SLOTS) * SLOT_BYTES + TEXT_AT, 'latin1');
    this.version = (this.version % MAX_VERSION) + 1;
    Atomics.store(words, at, this.version);
  }

  release(key: LostLease): void {
    const name = nameOf(key);
    const slot = this.slots.get(name);
    if (slot === undefined) return;
    this.slots.delete(name);
    Atomics.store(this.blockOf(slot).words, (slot % SLOTS) * WORDS, 0);
    this.free.push(slot);
  }

  private blockOf(slot: number): Block {
    const block = this.blocks[Math.floor(slot / SLOTS)];
    if (!block) throw new RangeError('No such slot');
    return block;
  }

  /** @returns a free slot */
  private grow(): number {
    const first = this.blocks.length * SLOTS;
    const block = blockIn(new SharedArrayBuffer(SLOTS * SLOT_BYTES));
    this.blocks.push(block);
    this.grown(block.buffer);
    for (let slot = first + SLOTS - 1; slot > first; slot--) this.free.push(slot);
    return first;
  }
}

/** The leases that a `LeaseTable` of another thread holds at this moment. */
export function readLeases(buffers: readonly SharedArrayBuffer[]): LeaseKey[] {
  return buffers.flatMap((buffer) => {
    const block = blockIn(buffer);
    return Array.from({ length: SLOTS }, (_, slot) => readLease(block, slot)).filter(
      (key) => key !== undefined,
    );
  });
}

function readLease({ words, bytes }: Block, slot: number): LeaseKey | undefined {
  for (;;) {
    const at = slot * WORDS;
    const version = Atomics.load(words, at);
    if (version === 0) return undefined;
    const [attempt = 0, length = 0] = words.subarray(at + 1, at + 3);
    const from = slot * SLOT_BYTES + TEXT_AT;
    const [tenantId = '', runId = ''] = bytes.toString('latin1', from, from + length).split(' ');
    // Another version: another lease got the slot meanwhile.
    if (Atomics.load(words, at) === version) return { tenantId, runId, attempt };
  }
}
