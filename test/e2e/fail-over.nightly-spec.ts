import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { Database } from '../../libs/database/src/index.js';
import { readGauge } from '../support/gauges.js';
import { Hold, times } from '../support/hold.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type Frame, RawCaller, type RpcAnswer, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../support/standby.js';
import { completes, followToCompletion, increasing, textsOf } from '../support/streams.js';

const STREAMS = 10;
const CHUNKS = 20;
const SENDERS = 4;
const REFUSED = /^Postgres is not available: its certificate is refused \(.+\): name the file of its CA/;

describe('Postgres with a standby, over TLS', () => {
  let postgres: ReplicatedPostgres;
  let stack: Stack;
  let token: string;
  const hold = new Hold();

  beforeAll(async () => {
    postgres = await startReplicatedPostgres();
    // Postgres carries the queue and the signals as well.
    const env = { ...hold.env, DATABASE_REPLICA_URL: postgres.standbyUrl, ...CRASH_SETTINGS };
    stack = await Stack.start({ driver: 'postgres', workers: 2, database: postgres, env });
    ({ token } = await stack.createTenant());
  });
  afterAll(async () => {
    await stack.stop();
    hold.remove();
  });

  it('is reached by every connection through TLS', async () => {
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    const { rows } = await client.query(`SELECT application_name AS name, bool_and(ssl) AS ssl
      FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE datname = 'baton' AND usename = 'baton' GROUP BY 1`);
    await client.end();
    expect(rows).toEqual(rows.map(({ name }: { name: string }) => ({ name, ssl: true })));
    expect(rows.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['baton', 'baton-messaging', 'baton-runs']),
    );
  });

  it.each([
    ['with a certificate of another CA', () => ({ sslrootcert: postgres.otherCaFile }), REFUSED],
    ['under a name that the certificate does not have', () => ({ host: 'localhost' }), REFUSED],
    ['if the file of the CA is not there', () => ({ sslrootcert: '/nowhere/ca.crt' }), /'\/nowhere\/ca.crt'/],
  ])('is refused %s, and says why', async (_, parameters, reason) => {
    const url = new URL(postgres.url);
    for (const [name, value] of Object.entries(parameters())) url.searchParams.set(name, value);
    const database = new Database({ url: url.toString(), poolSize: 1 });
    try {
      await expect(database.ping()).rejects.toThrow(reason);
    } finally {
      await database.close();
    }
  });

  /** Lists until an answer comes from that server. */
  async function listBy(server: 'replica' | 'primary'): Promise<string[]> {
    const counted = (): Promise<number> =>
      readGauge(stack.apis[0]!.managementUrl, `baton_list_reads_total{server="${server}"}`);
    const before = await counted();
    for (;;) {
      const answer = await new RawCaller(stack.url(0), token).call('ListTasks', {});
      const tasks = (answer.result?.tasks ?? []) as { id: string }[];
      if ((await counted()) > before) return tasks.map(({ id }) => id);
      await delay(20);
    }
  }

  it('is asked for lists at the standby', async () => {
    const caller = new RawCaller(stack.url(0), token);
    const { id } = (await caller.call('SendMessage', sendParams('hello'))).result!.task as { id: string };
    let listed: string[] = [];
    while (!listed.includes(id)) listed = await listBy('replica');
  });

  it('loses, doubles and reorders nothing when the primary dies and the standby is promoted', async () => {
    const url = () => stack.url(0, 'pacer');
    const caller = new RawCaller(stack.url(0), token);
    hold.hold();
    let begun = 0;
    let all: () => void;
    const everybodySpeaks = new Promise<void>((resolve) => (all = resolve));
    const read = async (_: unknown, n: number): Promise<Frame[]> => {
      let seen = 0;
      const onFrame = (): void => {
        if (++seen === 3 && ++begun === STREAMS) all();
      };
      const params = sendParams(times(CHUNKS, `task ${n}`));
      return followToCompletion(caller.at(url()), params, { again: url, onFrame });
    };
    const reading = Promise.all(Array.from({ length: STREAMS }, read));
    // A stream that fails early ends the wait with its error.
    await Promise.race([everybodySpeaks, reading]);

    // They send one message after another. What is not accepted they send again, as clients do.
    const sent: string[] = [];
    let isOver = false;
    const accepted = async (params: object): Promise<string> => {
      for (;;) {
        const answer: RpcAnswer | undefined = await caller.call('SendMessage', params).catch(() => undefined);
        if (answer?.result) return answer.result.task.id as string;
        await delay(50);
      }
    };
    const sending = Array.from({ length: SENDERS }, async () => {
      while (!isOver) {
        const { message } = sendParams(randomUUID());
        sent.push(await accepted({ message, configuration: { returnImmediately: true } }));
        await delay(20);
      }
    });
    const reach = async (count: number): Promise<void> => {
      while (sent.length < count) await Promise.race([delay(20), ...sending]);
    };
    await reach(10);

    hold.release();
    await postgres.crashPrimary();
    // As when the name of the service leads to the standby before it is the primary.
    postgres.leadToStandby();
    await expect(caller.call('SendMessage', sendParams('refused'))).resolves.toMatchObject({
      error: { code: expect.any(Number) },
    });
    const before = sent.length;
    postgres.promoteStandby();
    await reach(before + 10);
    isOver = true;
    await Promise.all(sending);

    for (const [n, frames] of (await reading).entries()) {
      expect([frames[0]?.id, increasing(frames), completes(frames.at(-1))]).toEqual([1, true, true]);
      expect(textsOf(frames)).toEqual(Array(CHUNKS).fill(`task ${n}`));
    }
    // The standby is the primary now, and no standby.
    expect(await listBy('primary')).not.toEqual([]);
    // Each message is one task, and each task ends.
    expect(new Set(sent).size).toBe(sent.length);
    for (const id of sent) {
      const end = async (): Promise<string> =>
        (await caller.call('GetTask', { id })).result?.status.state as string;
      let state = await end();
      while (/SUBMITTED|WORKING/.test(state)) {
        await delay(50);
        state = await end();
      }
      expect([id, state]).toEqual([id, 'TASK_STATE_COMPLETED']);
    }
  });
});
