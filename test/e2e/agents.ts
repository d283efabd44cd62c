import { cpSync, mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { driversOf } from '../support/nightly.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { installTestAgents, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';

const EXAMPLES = join(__dirname, '../../examples/agents');

function installAgents(agents: string): void {
  installTestAgents(agents, 'witness');
  for (const name of ['greeter', 'trip-planner', 'countdown'])
    cpSync(join(EXAMPLES, name), join(agents, name), { recursive: true });
  mkdirSync(join(agents, 'broken'));
  writeFileSync(join(agents, 'broken/agent.yaml'), 'name: B\ndescription: Breaks.\nruntime: executor\n');
  writeFileSync(join(agents, 'broken/index.mjs'), '\n\nthrow new Error("no key");\n');
}

describe.each(driversOf('postgres'))('agents in code on %s', (driver) => {
  const startStack = shareStack(driver, CRASH_SETTINGS, { apis: 2, installAgents });
  let stack: Stack;
  let token: string;
  let witnessFile: string;

  beforeAll(async () => {
    stack = await startStack();
    witnessFile = stack.env.WITNESS_FILE!;
    writeFileSync(witnessFile, '');
    ({ token } = await stack.createTenant());
  });
  const callerOf = (agent: string): RawCaller => new RawCaller(stack.url(0, agent), token);

  describe('a cancel', () => {
    it('reaches the agent from another API, ends the stream, and lets nothing follow', async () => {
      const caller = callerOf('witness');
      const other = caller.at(stack.url(1, 'witness'));
      const frames: Frame[] = [];
      let id = '';
      for await (const frame of caller.stream('SendStreamingMessage', sendParams('go'))) {
        frames.push(frame);
        id ||= frame.data.result?.task?.id as string;
        // The agent's own word: it runs. Before that there is nothing to stop.
        if (frames.length === 3) expect((await other.call('CancelTask', { id })).error).toBeUndefined();
      }
      expect(frames.at(-1)?.data.result?.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
      await written(witnessFile, id);
      expect(readFileSync(witnessFile, 'utf8')).toBe(`${id}\n`);
      const replay: Frame[] = [];
      for await (const frame of other.stream('SubscribeToTask', { id }, 0)) replay.push(frame);
      expect(replay.map((frame) => frame.id)).toEqual(frames.map((frame) => frame.id));
      expect((await other.call('CancelTask', { id })).error?.code).toBe(-32002);
    });
  });

  // Messaging has no part in these: once is enough.
  if (driver === 'postgres') {
    describe('an agent whose module throws when it is loaded', () => {
      it('keeps no other from working, and is named with file, line and reason', async () => {
        const headers = { authorization: `Bearer ${token}` };
        const list = await fetch(new URL('/v1/agents', stack.url(0)), { headers });
        expect(await list.json()).toMatchObject({
          load_failures: [
            { agent: 'broken', file: 'broken/index.mjs', line: 3, reason: 'could not be loaded: no key' },
          ],
        });
      });
    });

    describe('an unchanged AgentExecutor', () => {
      it('may answer with a bare message', async () => {
        const { result } = await callerOf('greeter').call('SendMessage', sendParams('I am Ada'));
        expect(result?.message).toMatchObject({ role: 'ROLE_AGENT' });
        const stored = await callerOf('greeter').call('GetTask', { id: result?.message.taskId });
        expect(stored.result?.status.state).toBe('TASK_STATE_COMPLETED');
      });

      it('is continued by another worker when its caller answers', async () => {
        const planner = callerOf('trip-planner');
        let task = (await planner.call('SendMessage', sendParams('Plan a trip'))).result!.task;
        for (const answer of ['Lisbon', '3']) {
          expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
          await stack.replaceWorkers();
          task = (await planner.call('SendMessage', sendParams(answer, { taskId: task.id }))).result!.task;
        }
        expect(task.status.state).toBe('TASK_STATE_COMPLETED');
        expect(JSON.stringify(task.artifacts)).toContain('Lisbon');
        expect(task.history.length).toBeGreaterThanOrEqual(5);
      });

      it('streams, and its card has its capabilities', async () => {
        const frames: Frame[] = [];
        const stream = callerOf('countdown').stream('SendStreamingMessage', sendParams('3'));
        for await (const frame of stream) frames.push(frame);
        expect(frames.at(-1)?.data.result?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
        const card = await fetch(`${stack.url(0, 'countdown')}/.well-known/agent-card.json`, {
          headers: { authorization: `Bearer ${token}` },
        });
        expect(await card.json()).toMatchObject({ name: 'Countdown', skills: [{ id: 'countdown' }] });
      });
    });
  }
});

/** Resolves when the file holds the word. */
function written(file: string, word: string): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (!readFileSync(file, 'utf8').includes(word)) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(file, check);
    check();
  });
}
