import type { DeletedRows, Retention } from '@baton/database';
import { Metrics } from '@baton/telemetry';
import { RetentionSweep } from './retention-sweep.js';

/** Everything behind the sweep. It records the calls. */
class FakeStore {
  readonly asked: string[] = [];
  retentions: readonly Retention[] = [];
  /** What each batch of a kind deletes, in order. */
  batches: Record<string, DeletedRows[]> = {};
  isTaken = false;
  /** Called in the middle of each batch. */
  meanwhile: () => Promise<void> = async () => undefined;

  async withLock(work: (assertLocked: () => Promise<void>) => Promise<void>): Promise<boolean> {
    if (this.isTaken) return false;
    await work(async () => undefined);
    return true;
  }
  expire = async (retentions: readonly Retention[]): Promise<DeletedRows> => {
    this.retentions = retentions;
    return this.batch('expire');
  };
  purge = async (): Promise<DeletedRows> => this.batch('purge');
  dropKeys = async (): Promise<DeletedRows> => this.batch('keys');
  dropReceivers = async (): Promise<DeletedRows> => this.batch('receivers');
  dropArchives = async (): Promise<DeletedRows> => this.batch('archives');
  dropBulk = async (): Promise<DeletedRows> => this.batch('bulk operations');
  forget = async (days: number): Promise<DeletedRows> => this.batch(`forget after ${days}`);
  dropCallRecords = async (days: number): Promise<DeletedRows> => this.batch(`records after ${days}`);
  dropAudit = async (days: number): Promise<DeletedRows> => this.batch(`audit after ${days}`);

  private async batch(kind: string): Promise<DeletedRows> {
    this.asked.push(kind);
    await this.meanwhile();
    return this.batches[kind]?.shift() ?? {};
  }
}

describe('the retention sweep', () => {
  let store: FakeStore;
  let metrics: Metrics;
  let limits: Record<string, number | null>;
  let sweep: RetentionSweep;
  let undecided: string[];
  let warned: unknown[];
  beforeEach(() => {
    store = new FakeStore();
    metrics = new Metrics();
    limits = { strict: 7, lax: null };
    const all = async () =>
      Object.entries(limits).map(([tenantId, retentionDays]) => ({ tenantId, limits: { retentionDays } }));
    const environment = {
      tombstoneDays: 90,
      auditRetentionDays: 365,
      recordRetentionDays: 7,
      retentionSweepMs: 60_000,
    };
    undecided = [];
    warned = [];
    const withoutRetention = async () => undecided;
    sweep = new RetentionSweep(
      store as never,
      { all, withoutRetention } as never,
      environment as never,
      metrics,
      { warn: (...said: unknown[]) => warned.push(said) } as never,
    );
  });

  it('makes batches until one finds nothing, and counts what they deleted', async () => {
    store.batches = { expire: [{ tasks: 2 }, { tasks: 1 }], purge: [{ events: 10, messages: 3, runs: 0 }] };
    expect(await sweep.runOnce()).toBe(true);
    expect(store.asked).toEqual([
      'expire',
      'expire',
      'expire',
      'purge',
      'purge',
      'keys',
      'receivers',
      'records after 7',
      'bulk operations',
      'archives',
      'forget after 90',
      'audit after 365',
    ]);
    const { body } = await metrics.render();
    expect(body).toContain('baton_retention_deleted_total{kind="tasks"} 3');
    expect(body).toContain('baton_retention_deleted_total{kind="events"} 10');
  });

  it('asks for the tasks of those tenants only who keep theirs for a time', async () => {
    await sweep.runOnce();
    expect(store.retentions).toEqual([{ tenantId: 'strict', days: 7 }]);
  });

  it('finishes begun deletions, also when every tenant keeps everything by now', async () => {
    limits = { strict: null };
    await sweep.runOnce();
    expect(store.asked).toEqual([
      'purge',
      'keys',
      'receivers',
      'records after 7',
      'bulk operations',
      'archives',
      'forget after 90',
      'audit after 365',
    ]);
  });

  it('logs once which tenants of an earlier release keep everything, and deletes nothing of theirs', async () => {
    undecided = ['old'];
    limits = { old: null };
    await sweep.runOnce();
    await sweep.runOnce();
    expect(warned).toEqual([
      [expect.stringContaining('set LIMIT_RETENTION_DAYS'), { tenants: 1, some: ['old'] }],
    ]);
    expect(store.retentions).toEqual([]);
  });

  it('leaves it to the worker that is at it', async () => {
    store.isTaken = true;
    expect(await sweep.runOnce()).toBe(false);
    expect(store.asked).toEqual([]);
  });

  it('makes no further batch once its worker is to stop', async () => {
    store.batches = { expire: Array<DeletedRows>(9).fill({ tasks: 1 }) };
    store.meanwhile = async () => void sweep.onModuleDestroy();
    await expect(sweep.runOnce()).rejects.toThrow('aborted');
    expect(store.asked).toEqual(['expire']);
  });
});
