import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { run } from '../../apps/cli/src/program.js';
import { type BatonProcess, startProcess } from '../support/baton-process.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { createDatabase, DRIVERS } from '../support/index.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { nightlyDescribe } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

const newKey = (): string => randomBytes(32).toString('base64');

describe('a process with another master key', () => {
  it('does not start, and names the key that it needs', async () => {
    const database = await createDatabase();
    const [key, stray] = [newKey(), newKey()];
    const api = await startProcess('api', { DATABASE_URL: database.url, BATON_MASTER_KEY: key });
    await api.stop();
    for (const kind of ['api', 'worker'] as const) {
      const start = startProcess(kind, { DATABASE_URL: database.url, BATON_MASTER_KEY: stray });
      await expect(start).rejects.toThrow(
        /could not start: BATON_MASTER_KEY gives the key [\da-f]{12}, and the secrets of this database are encrypted with the key [\da-f]{12}: let BATON_MASTER_KEY give that key, /,
      );
    }
    const rotating = { BATON_MASTER_KEY: stray, BATON_MASTER_KEY_PREVIOUS: key };
    await (await startProcess('api', { DATABASE_URL: database.url, ...rotating })).stop();
    await database.drop();
  });
});

/** Keys of a process, as docs/operating/secrets.md changes them. */
const keys = (newest: string, ...previous: string[]) => ({
  BATON_MASTER_KEY: newest,
  BATON_MASTER_KEY_PREVIOUS: previous.join(','),
});
/** What the model provider and the receiver ask for. Baton stores both encrypted. */
const PASSWORD = 'sk-of-the-provider';
const CREDENTIALS = 'of-the-receiver';
const CALLERS = 3;

interface SentTask {
  id: string;
  status: { state: string };
}

nightlyDescribe('the master key', () => {
  const [old, next] = [newKey(), newKey()];
  /** Tasks whose end the receiver has got. */
  const delivered = new Set<string>();
  const refused: string[] = [];
  let provider: ModelProvider;
  let receiver: Server;
  let stack: Stack;
  let token: string;
  let release: () => void;

  beforeAll(async () => {
    provider = await ModelProvider.start({ key: PASSWORD });
    receiver = createServer((request, response) => {
      const { authorization } = request.headers;
      if (authorization !== `Bearer ${CREDENTIALS}`) refused.push(`${authorization}`);
      let text = '';
      request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      request.once('end', () => {
        const id = /"taskId":"([^"]+)"/.exec(text)?.[1];
        if (id !== undefined && text.includes('TASK_STATE_COMPLETED')) delivered.add(id);
        response.end();
      });
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    stack = await Stack.start({
      driver: DRIVERS[0]!,
      env: {
        ...CRASH_SETTINGS,
        ...keys(old),
        OUTBOUND_ALLOW: '127.0.0.1',
        PUSH_NOTIFICATIONS: 'all',
      },
    });
    ({ token } = await stack.createTenant());
    const settings = { model: 'openai/gpt-5-mini', baseUrl: provider.url, prompt: 'Answer.', retries: 0 };
    for (const name of ['first', 'late']) {
      const config = { ...settings, key: name };
      const agent = { name, description: name, runtime: 'llm', config };
      await put(stack.apis[0]!, `agents/${name}`, agent);
    }
    await put(stack.apis[0]!, 'secrets/first', { value: PASSWORD, origins: [provider.origin] });
  });
  afterAll(async () => {
    await stack.stop();
    await provider.stop();
    receiver.close();
    receiver.closeAllConnections();
  });

  async function put(api: BatonProcess, path: string, body: object): Promise<void> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(`${api.url}/v1/${path}`, {
      method: 'PUT',
      headers,
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  }

  /** Sends the same message until its task has ended: an API that stops answers before that, or not. */
  async function send(agent: string, text: string): Promise<SentTask> {
    const { port } = receiver.address() as AddressInfo;
    const authentication = { scheme: 'Bearer', credentials: CREDENTIALS };
    const taskPushNotificationConfig = { url: `http://127.0.0.1:${port}/`, authentication };
    const params = { ...sendParams(text), configuration: { taskPushNotificationConfig } };
    for (;;) {
      const caller = new RawCaller(`${stack.apis.at(-1)!.url}/agents/${agent}`, token);
      const answer = await caller.call('SendMessage', params).catch(() => undefined);
      const task = answer?.result?.task as SentTask | undefined;
      if (task && !/WORKING|SUBMITTED/.test(task.status.state)) return task;
      if (answer?.error && answer.error.code !== -32603) throw new Error(JSON.stringify(answer.error));
      await delay(50);
    }
  }

  /** Further processes with these keys. The others stop, and give their work to them. */
  async function replace(
    settings: Record<string, string>,
    kept: readonly BatonProcess[] = [],
  ): Promise<void> {
    const former = [...stack.apis, ...stack.workers].filter((each) => !kept.includes(each));
    await Promise.all([stack.addApi(settings), stack.addWorker(settings)]);
    for (const each of former) {
      const list = each.kind === 'api' ? stack.apis : stack.workers;
      list.splice(list.indexOf(each), 1);
    }
    await Promise.all(former.map((each) => each.stop()));
  }

  it('is changed under load: no task is lost, every secret stays readable, and the old key is refused after it', async () => {
    const released = new Promise<void>((resolve) => (release = resolve));
    let held = 0;
    provider.answer(({ body }) => {
      const isHeld = JSON.stringify(body).includes('hold');
      // The second attempt asks anew, with what its own key can read.
      return { text: 'done', ...(isHeld && ++held === 1 && { after: released }) };
    });
    const load = { isOver: false, tasks: [] as SentTask[], agent: 'first' };
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!load.isOver) load.tasks.push(await send(load.agent, 'go'));
    });
    const loaded = async (more: number): Promise<void> => {
      const enough = load.tasks.length + more;
      await until(() => load.tasks.length >= enough);
    };

    await loaded(5);
    await replace(keys(old, next));
    const kept = [...stack.workers];
    // Only the worker with both keys takes it: there is no other one.
    const holding = send('first', 'hold');
    await until(() => held > 0);
    await loaded(5);
    await replace(keys(next, old), kept);
    // From here on the new key encrypts.
    await put(stack.apis[0]!, 'secrets/late', { value: PASSWORD, origins: [provider.origin] });
    load.agent = 'late';
    await loaded(5);
    expect(await rotate(next, old)).toMatch(/^[1-9]\d* secrets were encrypted again/);
    await replace(keys(next), kept);
    // The held call had its key from a worker that is gone.
    await stack.killWorkers(kept);
    expect((await holding).status.state).toBe('TASK_STATE_COMPLETED');
    expect(held).toBe(2);
    load.agent = 'first';
    await loaded(5);
    load.isOver = true;
    await Promise.all(callers);
    release();
    const states = new Set(load.tasks.map(({ status }) => status.state));
    expect([...states]).toEqual(['TASK_STATE_COMPLETED']);
    const all = [...load.tasks, await holding];
    await until(() => all.every(({ id }) => delivered.has(id)));
    expect(refused).toEqual([]);
    expect(await rotate(next)).toMatch(/^0 secrets were encrypted again/);
    const gone = { DATABASE_URL: stack.database.url, ...keys(old) };
    for (const kind of ['api', 'worker'] as const)
      await expect(startProcess(kind, gone)).rejects.toThrow(
        /could not start: BATON_MASTER_KEY gives the key/,
      );
  });

  /** `baton secrets rotate` with these keys. */
  async function rotate(newest: string, ...previous: string[]): Promise<string> {
    const [out, err]: string[][] = [[], []];
    const terminal = {
      out: (text: string) => void out!.push(text),
      err: (text: string) => void err!.push(text),
    };
    const source = { ...process.env, ...stack.env, ...keys(newest, ...previous) };
    const code = await run(['secrets', 'rotate'], { source, terminal, stdin: () => Readable.from([]) });
    if (code !== 0) throw new Error(err!.join('\n'));
    return out!.join('\n');
  }
});
