import { Client } from 'pg';
import { RUNTIMES } from '../../libs/agents/src/runtimes.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { DRIVER } from '../support/nightly.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Places } from '../support/runtimes/places.js';
import { RUNTIME_ROWS, type RuntimeRow, type Said } from '../support/runtimes/rows.js';
import { type LogEntry, defectsOf, readLog } from '../support/runtimes/task-log.js';
import { installTestAgents, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import type { Wired } from '../support/wire.js';
import { LOG } from '../support/log-sql.js';
import { until } from '../support/until.js';

const ROWS = Object.entries(RUNTIME_ROWS);
const having = <K extends keyof RuntimeRow>(key: K) =>
  ROWS.filter(
    (row): row is [string, RuntimeRow & Required<Pick<RuntimeRow, K>>] => row[1][key] !== undefined,
  );

const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, OUTBOUND_ALLOW: '127.0.0.1' },
  { installAgents: (agents) => installTestAgents(agents, RUNTIME_ROWS.executor.agent) },
);
let places: Places;
let stack: Stack;
let client: Client;
let tenant: TestTenant;
const MAX_EVENTS = 5;
/** Its agents may say little. */
let limited: TestTenant;

describe('a runtime', () => {
  beforeAll(async () => {
    stack = await startStack();
    places = await Places.start(stack.env.HOLD_FILE!);
    client = new Client({ connectionString: stack.database.url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
    [tenant, limited] = await Promise.all([stack.createTenant(), stack.createTenant()]);
    const limits = ['--event-bytes', '2500', '--events-per-run', String(MAX_EVENTS)];
    await stack.baton('tenants', 'limits', limited.slug, ...limits);
    await Promise.all([tenant, limited].flatMap((each) => ROWS.map(([, row]) => create(each, row))));
  });
  afterAll(async () => {
    await client.end();
    await places.stop();
  });
  afterEach(() => places.release());

  async function create({ token }: TestTenant, { agent, definition }: RuntimeRow): Promise<void> {
    if (!definition) return;
    await stack.rest(token).write('PUT', `/v1/agents/${agent}`, definition(places));
  }

  const callerOf = ({ agent }: RuntimeRow, { token }: TestTenant = tenant): RawCaller =>
    new RawCaller(stack.url(0, agent), token);
  const paramsOf = ({ text, metadata }: Said, more = {}) =>
    sendParams(text, { ...(metadata && { metadata }), ...more });
  const send = async (row: RuntimeRow, said: Said, more = {}, as = tenant): Promise<Wired> => {
    const { result, error } = await callerOf(row, as).call('SendMessage', paramsOf(said, more));
    if (!result) throw new Error(JSON.stringify(error));
    return result.task;
  };
  const cancel = (row: RuntimeRow, id: string) => callerOf(row).call('CancelTask', { id });
  const defects = async (id: string): Promise<string[]> => defectsOf(await readLog(client, id));

  const lastAttempt = (log: readonly LogEntry[]): number => Math.max(...log.map(({ attempt }) => attempt));

  const stateIn = ({ data }: Frame): unknown => data.result?.statusUpdate?.status.state;
  const isChunk = ({ data }: Frame): boolean => data.result?.artifactUpdate !== undefined;
  const textIn = (artifacts: Wired[]): string =>
    artifacts
      .flatMap(({ parts }) => parts as Wired[])
      .map(({ text = '' }) => text as string)
      .join('');

  /** What a caller folds of a stream. */
  function foldedText(frames: readonly Frame[]): string {
    const artifacts = new Map<string, Wired>();
    for (const { data } of frames) {
      const { artifact, append } = data.result?.artifactUpdate ?? {};
      if (!artifact) continue;
      const before = append ? artifacts.get(artifact.artifactId as string) : undefined;
      artifacts.set(artifact.artifactId as string, { parts: [...(before?.parts ?? []), ...artifact.parts] });
    }
    return textIn([...artifacts.values()]);
  }

  /** A stream that is read in the background. */
  function follow(row: RuntimeRow, said: Said) {
    const frames: Frame[] = [];
    const waiting: { isSo: (frame: Frame) => boolean; resolve: () => void }[] = [];
    const read = async (): Promise<Frame[]> => {
      for await (const frame of callerOf(row).stream('SendStreamingMessage', paramsOf(said))) {
        frames.push(frame);
        for (const { isSo, resolve } of waiting) if (isSo(frame)) resolve();
      }
      return frames;
    };
    const ended = read();
    const until = (isSo: (frame: Frame) => boolean): Promise<unknown> => {
      if (frames.some(isSo)) return Promise.resolve();
      // A stream that ends without it fails the test that waits.
      const end = ended.then(() =>
        Promise.reject(new Error(`the stream has ended: ${JSON.stringify(frames)}`)),
      );
      return Promise.race([new Promise<void>((resolve) => waiting.push({ isSo, resolve })), end]);
    };
    return { until, ended, id: () => frames[0]?.data.result?.task.id as string };
  }

  it('every runtime is in the table of this contract', () => {
    expect(Object.keys(RUNTIME_ROWS).sort()).toEqual(Object.keys(RUNTIMES).sort());
  });

  it.each(ROWS)('%s streams its whole reply, in order, with one end', async (_name, row) => {
    const { said, text } = row.reply;
    const stream = follow(row, said);
    const frames = await stream.ended;
    expect(frames.map(({ id }) => id)).toEqual(frames.map((_, index) => index + 1));
    expect(stateIn(frames.at(-1)!)).toBe('TASK_STATE_COMPLETED');
    expect(frames.filter((frame) => /COMPLETED|FAILED/.test(String(stateIn(frame))))).toHaveLength(1);
    if (typeof text === 'string') expect(foldedText(frames)).toBe(text);
    else expect(foldedText(frames)).toMatch(text);
    const { result } = await callerOf(row).call('GetTask', { id: stream.id() });
    expect(textIn(result!.artifacts as Wired[])).toBe(foldedText(frames));
    expect(await defects(stream.id())).toEqual([]);
  });

  describe('a cancel', () => {
    it.each(having('wait'))('ends %s before it has said anything', async (_name, row) => {
      const stream = follow(row, row.wait);
      await stream.until((frame) => stateIn(frame) === 'TASK_STATE_WORKING');
      expect((await cancel(row, stream.id())).error).toBeUndefined();
      const frames = await stream.ended;
      expect([stateIn(frames.at(-1)!), frames.filter(isChunk)]).toEqual(['TASK_STATE_CANCELED', []]);
      expect(await defects(stream.id())).toEqual([]);
    });

    it.each(having('stream'))('ends %s in the middle, and nothing follows', async (_name, row) => {
      places.hold();
      const stream = follow(row, row.long ?? row.stream);
      await stream.until(isChunk);
      await cancel(row, stream.id());
      const frames = await stream.ended;
      expect(stateIn(frames.at(-1)!)).toBe('TASK_STATE_CANCELED');
      places.release();
      expect((await send(row, row.reply.said)).status.state).toBe('TASK_STATE_COMPLETED');
      expect(await defects(stream.id())).toEqual([]);
    });

    it.each(having('ask'))('ends %s while it waits for its caller', async (_name, row) => {
      const { id, status } = await send(row, row.ask.said);
      expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
      expect((await cancel(row, id as string)).result?.status.state).toBe('TASK_STATE_CANCELED');
      const { error } = await callerOf(row).call('SendMessage', sendParams('late', { taskId: id as string }));
      expect(error?.message).toContain('the task has ended');
      expect(await defects(id as string)).toEqual([]);
    });
  });

  describe('when its worker is killed', () => {
    const streams = new Map<string, ReturnType<typeof follow>>();
    const asked = new Map<string, string>();

    beforeAll(async () => {
      places.hold();
      // The echo is held by time alone, so it begins last.
      const held = having('stream').sort(([name]) => (name === 'echo' ? 1 : -1));
      for (const [name, row] of having('ask')) asked.set(name, (await send(row, row.ask.said)).id as string);
      for (const [name, row] of held) {
        const stream = follow(row, row.stream);
        streams.set(name, stream);
        await stream.until(isChunk);
      }
      await stack.killWorkers();
      places.release();
      await stack.addWorker();
    });

    it.each(having('stream'))(
      '%s goes on elsewhere, and its reply is whole and there once',
      async (name, row) => {
        const stream = streams.get(name)!;
        const frames = await stream.ended;
        expect(stateIn(frames.at(-1)!)).toBe('TASK_STATE_COMPLETED');
        expect(foldedText(frames)).toBe(row.reply.text);
        const log = await readLog(client, stream.id());
        expect(lastAttempt(log)).toBeGreaterThan(1);
        expect(frames.map(({ id }) => id)).toEqual(log.map(({ sequence }) => sequence));
        expect(defectsOf(log)).toEqual([]);
      },
    );

    it.each(having('ask'))('%s gets the answer to what it has asked on another worker', async (name, row) => {
      const taskId = asked.get(name)!;
      const { status, artifacts } = await send(row, { text: row.ask.answer }, { taskId });
      expect(status.state).toBe('TASK_STATE_COMPLETED');
      expect(textIn(artifacts as Wired[])).toBe(row.ask.reply);
      expect(await defects(taskId)).toEqual([]);
    });
  });

  describe('a limit of the tenant', () => {
    const over = (runs: [string, RuntimeRow, Said][]) => runs;

    /** After the first event of a stream, each waits until what the one before has said is in the log, as far as it may be. */
    const pace = async (sent: number): Promise<void> => {
      const text = `SELECT count(*)::int AS chunks FROM ${LOG} e JOIN runs r USING (task_id, attempt)
      WHERE task_id = (SELECT max(id::text)::uuid FROM tasks) AND payload::jsonb ? 'artifactUpdate'`;
      const chunks = async () => (await client.query<{ chunks: number }>(text)).rows[0]!.chunks;
      await until(async () => (await chunks()) >= Math.min(sent - 1, MAX_EVENTS));
    };

    it.each(over(ROWS.map(([name, row]) => [name, row, row.large])))(
      'fails %s that says too much at once, and says so',
      async (_name, row, said) => {
        const { id, status } = await send(row, said, {}, limited);
        expect(status.state).toBe('TASK_STATE_FAILED');
        expect(textIn([status.message])).toMatch(
          /sent an event of \d+ bytes, and the limit eventBytes .* is 2500/,
        );
        expect(await defects(id as string)).toEqual([]);
      },
    );

    it.each(over(having('many').map(([name, row]) => [name, row, row.many])))(
      'fails %s that says too many things, and keeps those that it may say',
      async (_name, row, many) => {
        places.pace = pace;
        const { id, status } = await send(row, many, {}, limited);
        expect(status.state).toBe('TASK_STATE_FAILED');
        expect(textIn([status.message])).toMatch(
          /more events than the limit eventsPerRun .* allows, which is 5/,
        );
        const log = await readLog(client, id as string);
        const said = log.filter(({ attempt }) => attempt === lastAttempt(log));
        expect(said.filter(({ payload }) => payload.artifactUpdate)).toHaveLength(MAX_EVENTS);
        expect(defectsOf(log)).toEqual([]);
      },
    );
  });
});
