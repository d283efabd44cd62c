import { ProcessSlots, type Slot, type SlotHolder } from './process-slots.js';

/** A process of a tenant: it ends when it is retired and has no turns. */
class Process implements SlotHolder {
  inFlight = 1;
  hasBegun = true;
  isOpen = true;
  idleMs = 0;
  private end: () => void = () => undefined;
  readonly ended = new Promise<void>((resolve) => (this.end = resolve));

  constructor(private readonly slots: ProcessSlots) {}

  retire(): void {
    this.isOpen = false;
    if (this.inFlight === 0) this.end();
  }

  finish(idleMs = 0): void {
    this.inFlight = 0;
    this.idleMs = idleMs;
    if (!this.isOpen) this.end();
    this.slots.onTurnEnd();
  }
}

const never = new AbortController().signal;

describe('the slots of processes of tenants', () => {
  const start = async (slots: ProcessSlots, tenant: string): Promise<Process> => {
    const slot = (await slots.take(tenant, never)) as Slot;
    const process = new Process(slots);
    slot.hold(process);
    return process;
  };

  it('end the process that has been idle longest when another one is needed, and no more', async () => {
    const slots = new ProcessSlots(3);
    const [a, b, c] = [await start(slots, 'a'), await start(slots, 'b'), await start(slots, 'c')];
    b.finish(10);
    c.finish(20);
    await start(slots, 'd');
    expect([a, b, c].map(({ isOpen }) => isOpen)).toEqual([true, true, false]);
  });

  it('let a busy process finish its turns, and give it no new ones', async () => {
    const slots = new ProcessSlots(2);
    const [a, b] = [await start(slots, 'a'), await start(slots, 'b')];
    const waiting = start(slots, 'c');
    expect([a.isOpen, b.isOpen]).toEqual([false, true]);
    a.finish();
    expect((await waiting).isOpen).toBe(true);
    expect(b.isOpen).toBe(true);
  });

  it('take from the tenant with the most processes, and give to the one with the fewest', async () => {
    const slots = new ProcessSlots(3);
    const [small, big] = [await start(slots, 'small'), await start(slots, 'big')];
    const second = await start(slots, 'big');
    const order: string[] = [];
    const again = start(slots, 'big').then(() => order.push('big'));
    const other = start(slots, 'new').then(() => order.push('new'));
    expect([small.isOpen, big.isOpen, second.isOpen]).toEqual([true, false, false]);
    big.finish();
    await other;
    expect(order).toEqual(['new']);
    // It is idle before the second one has finished.
    small.finish();
    await again;
    expect([small.isOpen, second.inFlight]).toEqual([false, 1]);
  });

  it('do not end a process whose first turn is about to begin', async () => {
    const slots = new ProcessSlots(1);
    const a = await start(slots, 'a');
    Object.assign(a, { inFlight: 0, hasBegun: false });
    const waiting = start(slots, 'b');
    expect(a.isOpen).toBe(true);
    a.hasBegun = true;
    a.finish();
    await waiting;
  });

  it('forget a turn that was canceled while it waited', async () => {
    const slots = new ProcessSlots(1);
    const a = await start(slots, 'a');
    const canceled = new AbortController();
    const waiting = slots.take('b', canceled.signal);
    canceled.abort();
    expect(await waiting).toBeUndefined();
    a.finish();
    await start(slots, 'c');
    expect(await slots.take('d', AbortSignal.abort())).toBeUndefined();
  });
});
