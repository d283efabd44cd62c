/** A process that holds a slot. */
export interface SlotHolder {
  /** Number of turns in it. */
  readonly inFlight: number;
  /** Whether it has had a turn. The first one comes a moment after the start. */
  readonly hasBegun: boolean;
  /** Time without turns, in ms. */
  readonly idleMs: number;
  /** Whether it takes new turns. */
  readonly isOpen: boolean;
  /** Resolves when it has ended. */
  readonly ended: Promise<unknown>;
  /** Takes no new turns, and ends after the last one. */
  retire(): void;
}

/** Room for one process. The end of the process gives it back. */
export interface Slot {
  hold: (holder: SlotHolder) => void;
}

interface Taken {
  tenantId: string;
  holder: SlotHolder | undefined;
}

interface Held extends Taken {
  holder: SlotHolder;
}

const isIdle = ({ holder }: Held): boolean => holder.inFlight === 0;

interface WaitingTurn {
  tenantId: string;
  grant: (slot: Slot) => void;
}

/**
 * Bounds the processes of agents with `isolation: tenant` in this worker. While a turn waits for a slot, the process that has been idle
 * longest ends. If all have turns, the oldest one of the tenant with the most processes takes no new turns. So no tenant keeps
 * the others waiting for longer than its current turns take. A free slot goes to the tenant with the fewest processes.
 */
export class ProcessSlots {
  /** In the order in which they were taken. */
  private readonly taken = new Set<Taken>();
  private readonly waiting = new Set<WaitingTurn>();

  constructor(private readonly max: number) {}

  /** Waits for a slot. Resolves to undefined if `signal` aborts first. */
  take(tenantId: string, signal: AbortSignal): Promise<Slot | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    if (!this.isFull) return Promise.resolve(this.grant(tenantId));
    return new Promise((resolve) => {
      const abort = (): void => {
        this.waiting.delete(waiting);
        resolve(undefined);
      };
      const waiting: WaitingTurn = {
        tenantId,
        grant: (slot) => {
          this.waiting.delete(waiting);
          signal.removeEventListener('abort', abort);
          resolve(slot);
        },
      };
      this.waiting.add(waiting);
      signal.addEventListener('abort', abort, { once: true });
      this.makeRoom();
    });
  }

  /** Whether a turn that asks for a slot waits. */
  get isFull(): boolean {
    return this.taken.size >= this.max;
  }

  /** Call when a turn has ended: another one may wait for the slot of its process. */
  onTurnEnd(): void {
    this.makeRoom();
  }

  private grant(tenantId: string): Slot {
    const taken: Taken = { tenantId, holder: undefined };
    this.taken.add(taken);
    return {
      hold: (holder) => {
        taken.holder = holder;
        void holder.ended.then(() => {
          this.taken.delete(taken);
          this.grantNext();
        });
      },
    };
  }

  private grantNext(): void {
    const [next] = [...this.waiting].sort((a, b) => this.countOf(a.tenantId) - this.countOf(b.tenantId));
    next?.grant(this.grant(next.tenantId));
  }

  /** Ends one process for each waiting turn. An idle process ends at once, another one after its turns. */
  private makeRoom(): void {
    const holding = [...this.taken].filter((taken): taken is Held => taken.holder !== undefined);
    const ending = holding.filter(({ holder }) => !holder.isOpen);
    const open = holding.filter(({ holder }) => holder.isOpen && holder.hasBegun);
    const idle = open.filter(isIdle).sort((a, b) => b.holder.idleMs - a.holder.idleMs);
    const busy = open.filter((held) => !isIdle(held));
    busy.sort((a, b) => this.countOf(b.tenantId) - this.countOf(a.tenantId));
    const ended = idle.slice(0, Math.max(0, this.waiting.size - ending.filter(isIdle).length));
    const missing = this.waiting.size - ending.length - ended.length;
    for (const { holder } of [...ended, ...busy.slice(0, Math.max(0, missing))]) holder.retire();
  }

  private countOf(tenantId: string): number {
    let count = 0;
    for (const taken of this.taken) if (taken.tenantId === tenantId) count += 1;
    return count;
  }
}
