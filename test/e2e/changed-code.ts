import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { DRIVER } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const YAML = `name: Changing
description: Its code changes while its tasks sleep.
version: 1.0.0
runtime: executor
retry: { mode: restart, attempts: 1 }
`;

const BATON = join(__dirname, '../../bin/baton.cjs');

// Steps and sleeps are in Postgres: messaging has no part in these.
const startStack = shareStack(DRIVER, CRASH_SETTINGS, {
  installAgents: (agents, writable) => {
    folder = join(writable, 'changed-code');
    deployed = join(agents, 'changing');
    for (const each of [folder, deployed]) mkdirSync(each);
    writeFileSync(join(deployed, 'agent.yaml'), YAML);
    deploy('one');
  },
});
let folder: string;
let deployed: string;
let stack: Stack;
let token: string;

/** The code of the agent, with these steps before its sleep. Each step writes its name into a file. */
const codeOf = (...before: string[]): string => `import { defineAgent } from '@baton/agent';
import { appendFileSync, existsSync } from 'node:fs';
const effects = ${JSON.stringify(join(folder, 'effects'))};
const effect = (name) => () => appendFileSync(effects, name + '\\n');
export default defineAgent(async ({ text, step, sleep }) => {
  if (existsSync(effects + '-outside')) await step('outside', effect('outside'));
  ${before.map((name) => `await step('${name}', effect('${name}'));`).join('\n  ')}
  await sleep('nap', text);
  await step('after', effect('after'));
  return 'done';
});
`;
const deploy = (...before: string[]): void => writeFileSync(join(deployed, 'index.mjs'), codeOf(...before));

describe('code that changes while its tasks run', () => {
  beforeAll(async () => {
    stack = await startStack();
    ({ token } = await stack.createTenant());
  });
  beforeEach(() => {
    rmSync(join(folder, 'effects'), { force: true });
    rmSync(join(folder, 'effects-outside'), { force: true });
  });

  it('parks a task that does not fit it, which goes on by itself after a mended deploy', async () => {
    const id = await asleep();
    await stack.killWorkers();
    deploy('zero', 'one');
    await stack.addWorker();
    const parked = await untilTask(id, (task) => task.parked);
    expect(parked).toMatchObject({
      state: 'working',
      parked: {
        reason: 'code-changed',
        problem: 'Step "zero" is new, but an earlier attempt began "one" here',
        code: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      },
      runs: [{ state: 'suspended', crashes: 0 }],
      error: null,
    });
    const listed = await ask('/v1/tasks?parked=true');
    expect(listed.json.tasks).toMatchObject([{ task_id: id, parked: parked.parked }]);
    const attempt = Number(parked.runs[0].attempt);

    await stack.killWorkers();
    deploy('one');
    appendFileSync(join(deployed, 'index.mjs'), '// mended\n');
    await stack.addWorker();
    const done = await untilTask(id, (task) => task.state === 'completed');
    expect(done).toMatchObject({ runs: [{ state: 'succeeded', crashes: 0, attempt: attempt + 1 }] });
    expect(done.parked).toBeUndefined();
    expect(effects()).toEqual(['one', 'after']);
  });

  it('lets a parked task continue when a person resumes it', async () => {
    const id = await asleep();
    expect((await ask(`/v1/tasks/${id}/resume`, 'POST')).status).toBe(409);
    writeFileSync(join(folder, 'effects-outside'), '');
    await untilTask(id, (task) => task.parked);
    rmSync(join(folder, 'effects-outside'));
    const server = ['--url', stack.apis[0]!.url, '--token', token];
    expect(await stack.baton('tasks', 'list', '--parked', ...server)).toMatch(
      new RegExp(`${id} +changing +parked .*Step "outside" is new`),
    );
    expect(await stack.baton('tasks', 'resume', id, ...server)).toBe(`Task ${id} continues.`);
    await untilTask(id, (task) => task.state === 'completed');
    expect(effects()).toEqual(['one', 'after']);
  });

  it('lists before a deploy the tasks that would not fit, and does nothing', async () => {
    const id = await asleep('1h');
    const check = async (...before: string[]) => {
      const candidate = join(folder, 'candidate/changing');
      mkdirSync(candidate, { recursive: true });
      writeFileSync(join(candidate, 'agent.yaml'), YAML);
      writeFileSync(join(candidate, 'index.mjs'), codeOf(...before));
      const server = ['--url', stack.apis[0]!.url, '--token', token];
      const ran = promisify(execFile)(process.execPath, [BATON, 'agents', 'check', candidate, ...server]);
      return ran.then(
        ({ stdout }) => ({ code: 0, stdout }),
        (error: unknown) => {
          const { code, stdout } = error as { code: number; stdout: string };
          return { code, stdout };
        },
      );
    };
    expect(await check('one')).toEqual({ code: 0, stdout: `${id}  fits\n` });
    expect(await check('one', 'two')).toEqual({
      code: 1,
      stdout: `${id}  does not fit: Step "two" is new, but an earlier attempt began "nap" here\n`,
    });
    expect(effects()).toEqual(['one']);
    expect(await ask(`/v1/tasks/${id}`)).toMatchObject({
      json: { state: 'working', runs: [{ attempt: 1 }] },
    });
    await ask(`/v1/tasks/${id}/cancel`, 'POST');
  });

  it('cancels a parked task as any other', async () => {
    const id = await asleep();
    writeFileSync(join(folder, 'effects-outside'), '');
    await untilTask(id, (task) => task.parked);
    expect((await ask(`/v1/tasks/${id}/cancel`, 'POST')).status).toBe(200);
    const canceled = await untilTask(id, (task) => task.state === 'canceled');
    expect(canceled.parked).toBeUndefined();
  });
});

/** A new task that sleeps: the id. */
async function asleep(text = '2s'): Promise<string> {
  const { result } = await new RawCaller(stack.url(0, 'changing'), token).call('SendMessage', {
    ...sendParams(text),
    configuration: { returnImmediately: true },
  });
  const id = result!.task.id as string;
  await untilTask(id, ({ runs }) => runs[0].state === 'suspended');
  return id;
}

async function untilTask(id: string, isSo: (task: any) => unknown): Promise<any> {
  return until(async () => {
    const { json } = await ask(`/v1/tasks/${id}`);
    if (isSo(json)) return json;
    if (json.state === 'failed') throw new Error(JSON.stringify(json));
    return undefined;
  });
}

const ask = (path: string, method = 'GET') => stack.rest(token).call(method, path);

const effects = (): string[] => {
  const file = join(folder, 'effects');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
};
