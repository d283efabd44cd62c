import type { CallRecordStore, StoredCallRecord } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { CallRecords } from './call-records.js';

const RUN = { tenantId: 'tenant', taskId: 'task', runId: 'run', attempt: 1 };
const MIB = 1024 * 1024;
const record = (position: number, bytes = 1) => ({ position, json: 'x'.repeat(bytes) });

function recording(append: CallRecordStore['append'] = async () => undefined) {
  const stored: number[][] = [];
  const store = {
    append: async (run: typeof RUN, records: readonly StoredCallRecord[]) => {
      await append(run, records);
      stored.push(records.map(({ position }) => position));
    },
  };
  const all = new CallRecords(store as never, { recordDefault: 'failed' } as never, Logger.silent());
  return { all, stored };
}

describe('the records of a run', () => {
  it('are held until the run fails', async () => {
    const { all, stored } = recording();
    const records = all.forRun(RUN);
    records.hold(record(2));
    expect(stored).toEqual([]);
    records.hold(record(4));
    await records.storeHeld();
    await records.storeHeld();
    expect(stored).toEqual([[2, 4]]);
  });

  it('are forgotten when the attempt is over without a failure', async () => {
    const { all, stored } = recording();
    const records = all.forRun(RUN);
    records.hold(record(2));
    records.discard();
    await records.storeHeld();
    expect(stored).toEqual([]);
  });

  it('are held within 2 MiB, the newest ones', async () => {
    const { all, stored } = recording();
    const records = all.forRun(RUN);
    for (let i = 1; i <= 5; i++) records.hold(record(i, MIB - 1));
    await records.storeHeld();
    expect(stored).toEqual([[4, 5]]);
  });

  it('are held within 64 MiB of all runs, and the next runs have room again', async () => {
    const { all, stored } = recording();
    const many = Array.from({ length: 32 }, () => all.forRun(RUN));
    for (const each of many) each.hold(record(1, 2 * MIB));
    const late = all.forRun(RUN);
    late.hold(record(1));
    await late.storeHeld();
    expect(stored).toEqual([]);
    for (const each of many) each.discard();
    late.hold(record(1));
    await late.storeHeld();
    expect(stored).toEqual([[1]]);
  });

  it('never fail a run', async () => {
    const { all } = recording(async () => Promise.reject(new Error('no space left')));
    const records = all.forRun(RUN);
    records.hold(record(2));
    await records.storeHeld();
    expect(records.byDefault).toBe('failed');
  });
});
