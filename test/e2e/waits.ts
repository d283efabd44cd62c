import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { driversOf, nightlyIt } from '../support/nightly.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { installTestAgents, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const STATE = {
  asks: 'TASK_STATE_INPUT_REQUIRED',
  works: 'TASK_STATE_WORKING',
  done: 'TASK_STATE_COMPLETED',
};

describe.each(driversOf('postgres'))(
  'agents in code that wait with a time or go on for ever, on %s',
  (driver) => {
    const startStack = shareStack(driver, CRASH_SETTINGS, {
      installAgents: (agents) => installTestAgents(agents, 'stepper'),
    });
    let folder: string;
    let stack: Stack;
    let token: string;
    let tasks = 0;

    beforeAll(async () => {
      stack = await startStack();
      folder = join(stack.env.EXECUTOR_WRITE!, 'waits');
      mkdirSync(folder);
      ({ token } = await stack.createTenant());
    });

    const caller = (version?: string) => new RawCaller(stack.url(0, 'stepper'), token, version);
    const newFile = (): string => join(folder, `task-${++tasks}`);
    const namesIn = (file: string): string[] =>
      existsSync(file) ? [...readFileSync(file, 'utf8').matchAll(/^\w+/gm)].map(([name]) => name) : [];

    async function begin(file: string, ops: object[]): Promise<string> {
      const params = sendParams(JSON.stringify({ file, ops }));
      const configuration = { returnImmediately: true };
      return (await caller().call('SendMessage', { ...params, configuration })).result!.task.id as string;
    }
    const read = (id: string): Promise<any> => stack.rest(token).task(id);
    const isIn = (id: string, state: string) => async () => (await read(id)).task.status.state === state;
    const textIn = ({ task }: any): string => task.status.message.parts[0].text as string;

    /** Begins tasks that ask for longer and longer, until this could be done before the time was over. */
    async function askFor(ops: (time: string) => object[], whileItAsks: (id: string) => Promise<void>) {
      for (let seconds = 3; ; seconds *= 2) {
        const file = newFile();
        const id = await begin(file, ops(`${seconds}s`));
        let asked = await read(id);
        // Before it asks, it is submitted and then at work.
        await until(async () => {
          asked = await read(id);
          return [STATE.asks, STATE.done].includes(asked.task.status.state as string);
        });
        await whileItAsks(id);
        if (asked.wakes_at !== null && Date.parse(asked.wakes_at as string) > Date.now()) return { id, file };
      }
    }

    nightlyIt(
      'goes on for as long as it likes with few steps in its journal, although its workers are killed',
      async () => {
        const file = newFile();
        const ops = [
          { op: 'chunk', name: '. ', append: true },
          { op: 'again', name: 's', steps: 500, times: 3 },
        ];
        const id = await begin(file, ops);
        for (const effects of [300, 1_100]) {
          await until(() => namesIn(file).length >= effects);
          await stack.replaceWorkers();
        }
        await until(isIn(id, STATE.done));
        const { task, steps } = await read(id);
        expect(textIn({ task })).toBe('[3]');
        expect(task.artifacts[0].parts.map(({ text }: any) => text as string).join('')).toBe('. '.repeat(3));
        // A step that was under way when its worker died is run again.
        const effects = namesIn(file);
        expect(new Set(effects).size).toBe(1_500);
        expect(effects.length).toBeLessThanOrEqual(1_502);
        expect(steps).toHaveLength(500);
      },
    );

    it('goes on without an answer, once, although its worker was killed, and callers of each version see it', async () => {
      const seen = new Map<string, string[]>();
      let streams: Promise<void>[] = [];
      const watch = async (id: string, version: string, method: string): Promise<void> => {
        const states: string[] = [];
        try {
          for await (const { data } of caller(version).stream(method, { id })) {
            // The first frame has the task as it is.
            seen.set(version, states);
            const update = data.result?.statusUpdate ?? data.result;
            if (update?.status?.state) states.push(update.status.state as string);
          }
        } catch {
          // It has ended already.
          seen.set(version, states);
        }
      };
      const ops = (time: string) => [
        { op: 'chunk', name: '1 ' },
        { op: 'step', name: 'before' },
        { op: 'race', name: 'name', question: 'Your name?', for: time },
        { op: 'step', name: 'after' },
        { op: 'chunk', name: '2', append: true },
      ];
      const { id, file } = await askFor(ops, async (asking) => {
        await stack.replaceWorkers();
        seen.clear();
        streams = [watch(asking, '1.0', 'SubscribeToTask'), watch(asking, '0.3', 'tasks/resubscribe')];
        await until(() => streams.length === seen.size);
      });
      await until(isIn(id, STATE.done));
      await Promise.all(streams);
      const { task, wakes_at: wakesAt, runs } = await read(id);
      expect(textIn({ task })).toBe('["before","nobody","after"]');
      expect(namesIn(file)).toEqual(['before', 'after']);
      expect(task.artifacts[0].parts.map(({ text }: any) => text as string).join('')).toBe('1 2');
      expect(task.history.map(({ role }: any) => role as string)).toEqual([
        'ROLE_USER',
        'ROLE_AGENT',
        'ROLE_AGENT',
      ]);
      expect({ wakesAt, runs: runs.length as number }).toEqual({ wakesAt: null, runs: 1 });
      expect(seen.get('1.0')!.slice(-2)).toEqual([STATE.works, STATE.done]);
      expect(seen.get('0.3')!.slice(-2)).toEqual(['working', 'completed']);
    });

    it('refuses an answer that comes too late, and takes one that comes in time', async () => {
      const gate = join(folder, 'gate');
      const ask = (timeout: string) => [
        { op: 'ask', name: 'name', question: 'Your name?', timeout },
        { op: 'step', name: 'after', until: gate },
      ];
      const [late, early] = [await begin(newFile(), ask('10ms')), await begin(newFile(), ask('1h'))];
      await until(isIn(early, STATE.asks));
      expect(await read(early)).toMatchObject({ wakes_at: expect.stringMatching(/^\d{4}-/) as string });
      const shown = await stack.baton('tasks', 'show', early, '--url', stack.apis[0]!.url, '--token', token);
      expect(shown).toMatch(/asks until +\S/);
      const answered = caller().call('SendMessage', sendParams('Ada', { taskId: early }));
      await until(async () => (await read(late)).steps.some(({ name }: any) => name === 'after'));
      const { error } = await caller().call('SendMessage', sendParams('Ada', { taskId: late }));
      expect(error!.message).toMatch(/the time for an answer is over/);
      // The step that died is run again, and the end of the question stays as it is.
      await stack.replaceWorkers();
      writeFileSync(gate, '');
      await until(isIn(late, STATE.done));
      expect(textIn(await read(late))).toBe('["INPUT_TIMEOUT","after"]');
      expect(textIn((await answered).result)).toBe('["Ada","after"]');
      expect((await read(early)).wakes_at).toBe(null);
    });
  },
);
