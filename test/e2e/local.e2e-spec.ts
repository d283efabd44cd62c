import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { waitUntil } from '../../apps/local/src/services/service-process.js';
import { createDatabase, createRedisUrl, DRIVERS, type TestDatabase } from '../support/index.js';
import {
  childrenOf,
  isRunning,
  LOCAL_MAIN,
  LocalRun,
  startOnIpv6,
  temporaryHome,
} from '../support/local-run.js';
import { nightlyDescribe, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';

interface Demo {
  url: string;
  tenant: string;
  token: string;
}

/** Commands of which a machine may have none. */
const has = (command: string): boolean =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, command)));

const linuxIt = process.platform === 'linux' ? it : it.skip;
const nightlyLinuxIt = process.platform === 'linux' ? nightlyIt : it.skip;

const BATON = join(__dirname, '../../bin/baton.cjs');

/** Network namespaces need root. */
const ipv6It =
  has('unshare') && has('nsenter') && has('ip') && process.getuid?.() === 0 ? nightlyIt : it.skip;

describe('npm start', () => {
  const home = temporaryHome();
  // It finds its ports itself.
  const ports = { PORT: '0', MANAGEMENT_PORT: undefined, GRPC_PORT: undefined };
  const environment = { BATON_HOME: home.path, ...ports };
  const runs: LocalRun[] = [];
  const start = (more: Record<string, string> = {}): LocalRun => {
    const run = new LocalRun({ ...environment, ...more });
    runs.push(run);
    return run;
  };
  /** In a folder with a copy of .env.example, and a setting that is mistyped. */
  const startWithDotEnv = (): LocalRun => {
    const folder = join(home.path, '..');
    const example = readFileSync(join(__dirname, '../../.env.example'), 'utf8');
    writeFileSync(join(folder, '.env'), `${example}\nLIMIT_RUN_AT_ONCE=4711\n`);
    const run = new LocalRun({ ...environment, DATABASE_URL: undefined, REDIS_URL: undefined }, folder);
    runs.push(run);
    return run;
  };
  const demo = (): Demo => JSON.parse(readFileSync(join(home.path, 'demo.json'), 'utf8')) as Demo;
  const echo = (): RawCaller => new RawCaller(`${demo().url}/agents/echo`, demo().token);
  const send = async (text: string): Promise<{ id: string; status: { state: string } }> => {
    const { result, ...refused } = await echo().call('SendMessage', sendParams(text));
    if (!result) throw new Error(JSON.stringify(refused));
    return result.task as { id: string; status: { state: string } };
  };

  afterAll(async () => {
    for (const run of runs) run.signal('SIGTERM');
    await Promise.all(runs.map((run) => run.exited));
    home.remove();
  });

  let first: LocalRun;
  let taskId: string;

  it('comes up on a bare machine with a tenant, a token and a call that streams', async () => {
    first = start();
    await first.ready();
    expect(demo().tenant).toBe('demo');
    expect(first.output).toContain(`URL     ${demo().url}`);
    expect(first.output).toContain(`Token   ${demo().token}`);
    expect(first.output).toContain('Reach: this machine only. HOST=0.0.0.0 lets your network in.');
    const metrics = /Metrics (http:\S+)/.exec(first.output)?.[1] ?? '';
    expect(await (await fetch(metrics)).text()).toContain('baton_live_workers 1');
    expect((await fetch(`${demo().url}/metrics`)).status).toBe(404);
    const frames = [];
    const params = sendParams('Hello', { metadata: { echo: { chunks: 3 } } });
    for await (const frame of echo().stream('SendStreamingMessage', params)) frames.push(frame);
    expect(frames.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(frames.at(-1)?.data.result?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    taskId = frames[0]?.data.result?.task.id as string;
  });

  const rest = (path: string, method = 'GET') =>
    fetch(`${demo().url}/v1/${path}`, { method, headers: { authorization: `Bearer ${demo().token}` } });

  it('shows an agent and a finished task of it, with the calls of its model and of another agent', async () => {
    expect(first.output).toContain('First task: the agent "guide" has answered one');
    const { tasks } = (await (await rest('tasks?agent=guide')).json()) as {
      tasks: { task_id: string; state: string }[];
    };
    expect(tasks.map(({ state }) => state)).toEqual(['completed']);
    const trace = await (await rest(`tasks/${tasks[0]?.task_id}/trace?words=true`)).text();
    expect(trace).toContain('openai-compatible/scripted');
    expect(trace).toContain('ask_echo');
    const guide = new RawCaller(`${demo().url}/agents/guide`, demo().token);
    const { result } = await guide.call('SendMessage', sendParams('Is anybody there?'));
    const { artifacts } = result?.task as { artifacts: { parts: { text?: string }[] }[] };
    const said = artifacts.flatMap(({ parts }) => parts).map(({ text }) => text ?? '');
    expect(said.join('')).toContain('You wrote: "Is anybody there?" I have asked the agent');
  });

  it('prints a link that signs in to the console once, with all rights, and keeps it out of the logs', async () => {
    const [, url, code] = /Console (http:\S+)#(\S+)/.exec(first.output) ?? [];
    expect(url).toBe(`${demo().url}/console/link`);
    const redeem = async () =>
      fetch(`${demo().url}/console/sign-in-link`, {
        method: 'POST',
        headers: { authorization: `Bearer ${code}` },
      });
    const { token } = (await (await redeem()).json()) as { token: string };
    const headers = { authorization: `Bearer ${token}` };
    const caller = (await (await fetch(`${demo().url}/v1/whoami`, { headers })).json()) as {
      tenant: string;
      scopes: string[];
    };
    expect([caller.tenant, caller.scopes.includes('admin')]).toEqual(['demo', true]);
    expect((await redeem()).status).toBe(404);
    const log = readFileSync(join(home.path, 'logs/api.log'), 'utf8');
    expect([log.includes(code!), log.includes(token)]).toEqual([false, false]);
  });

  (has('curl') ? it : it.skip)('prints a command that can be run as it stands', async () => {
    const command = first.output.slice(first.output.indexOf('curl -N'), first.output.indexOf('\n\nCtrl-C'));
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command]);
    expect(stdout).toMatch(/^id: 1\ndata: /);
    expect(stdout).toContain('TASK_STATE_COMPLETED');
  });

  it('keeps what is secret for its owner', () => {
    const keys = ['master-key', 'database-system-key', 'push-signing-key'];
    const passwords = ['postgres/password', 'postgres/owner-password'];
    for (const name of ['demo.json', 'runtime.json', 'logs/api.log', ...keys, ...passwords]) {
      expect([name, (statSync(join(home.path, name)).mode & 0o077).toString(8)]).toEqual([name, '0']);
    }
  });

  it('lets no one without its key work across tenants, with DATABASE_URL alone', async () => {
    const { databaseUrl } = JSON.parse(readFileSync(join(home.path, 'runtime.json'), 'utf8')) as {
      databaseUrl: string;
    };
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      await expect(client.query('SELECT FROM tasks')).rejects.toThrow('needs the key of this database');
      await expect(client.query('ALTER TABLE tasks DISABLE ROW LEVEL SECURITY')).rejects.toThrow(
        'must be owner',
      );
      const key = readFileSync(join(home.path, 'database-system-key'), 'utf8').trim();
      await client.query(`SELECT set_config('baton.system_key', $1, false)`, [key]);
      expect((await client.query('SELECT FROM tasks')).rowCount).toBeGreaterThan(0);
      for (const log of ['api', 'worker-1']) {
        expect(readFileSync(join(home.path, 'logs', `${log}.log`), 'utf8')).not.toContain(key);
      }
    } finally {
      await client.end();
    }
  });

  it('refuses to run twice from one folder, and leaves the first alone', async () => {
    const second = start();
    expect(await second.exited).toBe(1);
    expect(second.output).toMatch(
      /^Baton is already running from .+: stop it first, or give this one a folder/,
    );
    expect((await send('still there')).status.state).toBe('TASK_STATE_COMPLETED');
  });

  linuxIt('starts a process again that dies, and says so', async () => {
    const worker = childrenOf(first.pid).find(({ command }) => command.includes('apps/worker'));
    process.kill(worker?.pid ?? 0, 'SIGKILL');
    await first.printed('Worker 1 is back.');
    expect(first.output).toContain('Worker 1 ended (killed by SIGKILL). It is started again in 0.5 s.');
    expect((await send('after a crash')).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('stops everything on Ctrl-C, and finds its tasks and its token when started again', async () => {
    const processes = process.platform === 'linux' ? childrenOf(first.pid) : [];
    const before = demo();
    expect((await rest('agents/guide', 'DELETE')).status).toBe(204);
    first.signal('SIGINT');
    expect(await first.exited).toBe(0);
    expect(processes.filter(({ pid }) => isRunning(pid))).toEqual([]);
    expect(existsSync(join(home.path, 'runtime.json'))).toBe(false);

    const again = startWithDotEnv();
    await again.ready();
    expect(demo().token).toBe(before.token);
    // What was deleted stays deleted.
    expect((await rest('agents/guide')).status).toBe(404);
    const { result } = await echo().call('GetTask', { id: taskId });
    expect(result).toMatchObject({ id: taskId, status: { state: 'TASK_STATE_COMPLETED' } });
    first = again;
  });

  it('works with a copy of .env.example as it is, and names a setting that is mistyped', () => {
    const sentence = 'LIMIT_RUN_AT_ONCE is not a setting; did you mean LIMIT_RUNS_AT_ONCE?';
    expect(first.output).toContain(`Warning: ${sentence}\n`);
    for (const name of ['api', 'worker-1']) {
      const log = readFileSync(join(home.path, 'logs', `${name}.log`), 'utf8');
      expect(log.split('\n').filter((line) => line.includes(sentence))).toHaveLength(1);
      expect(log).not.toContain('4711');
    }
  });

  nightlyLinuxIt('leaves nothing running when it is killed itself, and starts again', async () => {
    const processes = childrenOf(first.pid);
    expect(processes.length).toBeGreaterThanOrEqual(3);
    first.signal('SIGKILL');
    await first.exited;
    // As if it had died before the agent was made.
    const { url, tenant, token } = demo();
    writeFileSync(join(home.path, 'demo.json'), JSON.stringify({ url, tenant, token }));
    const again = start();
    await again.ready();
    expect(processes.filter(({ pid }) => isRunning(pid))).toEqual([]);
    expect((await echo().call('GetTask', { id: taskId })).result?.id).toBe(taskId);
    expect(again.output).toContain('First task: the agent "guide" has answered one');
    expect((await rest('agents/guide')).status).toBe(200);
    first = again;
  });

  ipv6It('runs on a machine without IPv4', async () => {
    const own = temporaryHome();
    const run = startOnIpv6({ ...environment, BATON_HOME: own.path, HOST: '::1' });
    runs.push(run);
    try {
      await run.ready();
      const { url, token } = JSON.parse(readFileSync(join(own.path, 'demo.json'), 'utf8')) as Demo;
      const inside = async (command: string, ...args: string[]): Promise<string> => {
        const entered = [`--net=/proc/${run.pid}/ns/net`, command, ...args];
        return (await promisify(execFile)('nsenter', entered)).stdout;
      };
      const server = url.replace('localhost', '[::1]');
      const options = ['--url', server, '--token', token];
      expect(await inside(process.execPath, BATON, 'send', 'echo', 'Hello', ...options)).toBe('Hello\n');
      const metrics = /Metrics (http:\S+)/.exec(run.output)?.[1] ?? '';
      const read = `fetch('${metrics}').then((answer) => answer.text()).then(console.log)`;
      expect(await inside(process.execPath, '-e', read)).toContain('baton_live_workers 1');
    } finally {
      run.signal('SIGTERM');
      expect(await run.exited).toBe(0);
      own.remove();
    }
  });

  it('makes no other master key for its database, unless the key is lost, and a new token when the old one is no longer good', async () => {
    first.signal('SIGTERM');
    expect(await first.exited).toBe(0);
    writeFileSync(join(home.path, 'demo.json'), JSON.stringify({ ...demo(), token: 'baton_forged' }));
    const file = join(home.path, 'master-key');
    const key = readFileSync(file, 'utf8');
    rmSync(file);
    const refused = start();
    expect(await refused.exited).toBe(1);
    expect(refused.output).toMatch(
      /master-key is gone, and the database was used with this master key: put the file back/,
    );
    expect(existsSync(file)).toBe(false);
    first = new LocalRun({ ...environment, PATH: '' }, undefined, [LOCAL_MAIN, '--key-lost']);
    runs.push(first);
    await first.ready();
    expect(readFileSync(file, 'utf8')).not.toBe(key);
    expect((await send('hello')).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('does without Redis where there is none, and prints one line about it', () => {
    const note = first.output.split('\n').find((line) => line.includes('Messaging:'));
    expect(note).toMatch(/Messaging: Postgres, because there is neither REDIS_URL nor redis-server/);
  });
});

// By day authors.e2e-spec starts it with a Postgres and agents.
nightlyDescribe(
  'npm start with a Postgres, a Redis and agents that it is given, beside another that starts at the same time',
  () => {
    const home = temporaryHome();
    const otherHome = temporaryHome();
    const isRedisGiven = DRIVERS.includes('redis');
    let databases: TestDatabase[];
    let run: LocalRun;
    let other: LocalRun;

    beforeAll(async () => {
      databases = await Promise.all([createDatabase(), createDatabase()]);
      // It finds its ports itself. Nothing that could be started is found.
      const environment = { PORT: '0', MANAGEMENT_PORT: undefined, GRPC_PORT: undefined, PATH: '' };
      run = new LocalRun({
        ...environment,
        BATON_HOME: home.path,
        WORKERS: '2',
        DATABASE_URL: databases[0]!.url,
        REDIS_URL: isRedisGiven ? await createRedisUrl() : '',
        BATON_AGENTS_DIR: join(__dirname, '../../examples/agents'),
      });
      other = new LocalRun({ ...environment, BATON_HOME: otherHome.path, DATABASE_URL: databases[1]!.url });
      await Promise.all([run.ready(), other.ready()]);
    });

    afterAll(async () => {
      for (const each of [run, other]) each.signal('SIGTERM');
      expect(await Promise.all([run.exited, other.exited])).toEqual([0, 0]);
      // The process that has started them stops them: `drop` fails where nothing answers.
      await Promise.all(databases.map((database) => database.drop()));
      for (const each of [home, otherHome]) each.remove();
    });

    linuxIt('starts none of its own, and as many workers as WORKERS says', () => {
      const programs = childrenOf(run.pid).map(
        ({ command }) => /apps\/(\w+)\//.exec(command)?.[1] ?? command,
      );
      expect(programs.sort()).toEqual(['api', 'worker', 'worker']);
      expect(['postgres', 'redis'].filter((name) => existsSync(join(home.path, name)))).toEqual([]);
      expect(run.output).toContain('Postgres: the one of DATABASE_URL.');
      expect(run.output.includes('Messaging: the Redis of REDIS_URL.')).toBe(isRedisGiven);
    });

    it('serves the agents of BATON_AGENTS_DIR', async () => {
      const { url, token } = JSON.parse(readFileSync(join(home.path, 'demo.json'), 'utf8')) as Demo;
      const greeter = new RawCaller(`${url}/agents/greeter`, token);
      const { result } = await greeter.call('SendMessage', sendParams('I am Ada'));
      expect(JSON.stringify(result?.message)).toContain('Hello! You said: I am Ada');
    });

    it('finds ports of its own', () => {
      const found = [run, other].flatMap(
        ({ output }) => output.match(/(?<=(?:Metrics|gRPC) +\S*:)\d+/g) ?? [],
      );
      expect(new Set(found).size).toBe(4);
    });
  },
);

describe('npm start prints one sentence about the fault, and leaves nothing running', () => {
  const home = temporaryHome();
  afterAll(() => home.remove());

  /** Runs to its end; what it printed. */
  const fail = async (environment: Record<string, string>): Promise<string> => {
    const run = new LocalRun({ BATON_HOME: home.path, PORT: '0', ...environment });
    expect(await run.exited).toBe(1);
    expect(existsSync(join(home.path, 'lock'))).toBe(false);
    return run.output;
  };

  it('when the port is taken', async () => {
    const server = await new Promise<Server>((resolve) => {
      const listening = createServer().listen(0, () => resolve(listening));
    });
    const { port } = server.address() as { port: number };
    const output = await fail({ PORT: String(port) });
    expect(output).toBe(
      `Port ${port} is taken: stop what uses it, or choose another, e.g. \`PORT=${port + 1} npm start\`.\n`,
    );
    server.close();
  });

  it('when the folder cannot be written', async () => {
    const file = join(home.path, '..', 'file');
    writeFileSync(file, '');
    const output = await fail({ BATON_HOME: join(file, 'home') });
    expect(output).toMatch(
      /^The folder .+ is not writable \(ENOTDIR.*\): set BATON_HOME to a writable folder\.\n$/,
    );
  });

  it('when a key of the environment is wrong', async () => {
    expect(await fail({ WORKERS: 'many' })).toBe(
      'WORKERS is "many": set it to a whole number from 1 to 64.\n',
    );
    expect(await fail({ LEASE_MS: '1', DATABASE_URL: 'postgres://127.0.0.1:1/x' })).toMatch(
      /LEASE_HEARTBEAT_MS/,
    );
  });

  it('when the database or the Redis it was given does not answer', async () => {
    const nowhere = '127.0.0.1:1';
    expect(await fail({ DATABASE_URL: `postgres://baton:hunter2@${nowhere}/baton` })).not.toContain(
      'hunter2',
    );
    const output = await fail({
      DATABASE_URL: process.env.TEST_DATABASE_URL ?? '',
      REDIS_URL: `redis://${nowhere}`,
    });
    expect(output).toMatch(/Redis/);
    expect(output.trim().split('\n')).toHaveLength(1);
  });

  nightlyIt('and when it is interrupted while it starts', async () => {
    const run = new LocalRun({ BATON_HOME: home.path, PORT: '0' });
    const isUp = (): boolean => existsSync(join(home.path, 'postgres', 'process.json'));
    expect(await waitUntil(isUp, 4 * 60_000, 5)).toBe(true);
    run.signal('SIGINT');
    expect(await run.exited).toBe(0);
    expect(existsSync(join(home.path, 'postgres', 'process.json'))).toBe(false);
    expect(existsSync(join(home.path, 'lock'))).toBe(false);
  });
});
