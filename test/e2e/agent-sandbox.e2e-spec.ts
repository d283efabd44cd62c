import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sandboxProblem } from '@baton/sandbox';
import { DRIVERS } from '../support/index.js';
import { LocalRun, temporaryHome } from '../support/local-run.js';
import { nightlyDescribe, nightlyIt } from '../support/nightly.js';
import { RawCaller, type RpcAnswer, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

const ROOT = join(__dirname, '../..');
const AGENTS = join(__dirname, '../hostile-agents');
const MASTER_KEY = Buffer.alloc(32, 'm').toString('base64');
const SYSTEM_KEY = Buffer.alloc(32, 's').toString('base64');
const textOf = ({ result }: RpcAnswer): string => result?.task.artifacts[0].parts[0].text as string;

const linuxDescribe = process.platform === 'linux' ? describe : describe.skip;
const isSandboxed = sandboxProblem() === undefined;
const sandboxDescribe = isSandboxed ? nightlyDescribe : describe.skip;
const sandboxIt = isSandboxed ? it : it.skip;

/** What an author's code finds of secrets, in every way that it has. */
async function findings(
  caller: RawCaller,
  { needles, paths }: { needles: string[]; paths: string[] },
): Promise<unknown> {
  const native = join(ROOT, 'node_modules/koffi');
  const answer = await caller.call('SendMessage', sendParams(JSON.stringify({ needles, paths, native })));
  return JSON.parse(textOf(answer));
}

/** A folder with a secret in a file. */
function folderWithSecret(): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-hostile-'));
  writeFileSync(join(folder, '.env'), `DATABASE_SYSTEM_KEY=${SYSTEM_KEY}\n`);
  return folder;
}

// By day the code runs in a worker that no `npm start` has started: see the last test.
sandboxDescribe('code of an author in npm start', () => {
  const home = temporaryHome();
  const folder = folderWithSecret();
  let local: LocalRun;

  beforeAll(async () => {
    const ports = { PORT: '0', MANAGEMENT_PORT: undefined, GRPC_PORT: undefined };
    const agents = { BATON_AGENTS_DIR: AGENTS, BATON_MASTER_KEY: MASTER_KEY };
    local = new LocalRun({ BATON_HOME: home.path, WORKERS: '2', ...ports, ...agents }, folder);
    await local.ready();
  });

  afterAll(async () => {
    local.signal('SIGTERM');
    await local.exited;
    home.remove();
    rmSync(folder, { recursive: true });
  });

  it('finds no secret in processes, files, memory, descriptors or by a debugger', async () => {
    const kept = (...names: string[]): string => readFileSync(join(home.path, ...names), 'utf8').trim();
    const demo = JSON.parse(kept('demo.json')) as { url: string; token: string };
    const files = ['demo.json', 'runtime.json', 'push-signing-key', 'postgres/password', 'logs', 'postgres'];
    const needles = [
      MASTER_KEY,
      SYSTEM_KEY,
      demo.token,
      kept('postgres/password'),
      kept('postgres/owner-password'),
    ];
    const paths = [
      home.path,
      ...files.map((name) => join(home.path, name)),
      folder,
      join(folder, '.env'),
      tmpdir(),
    ];
    const caller = new RawCaller(`${demo.url}/agents/prober`, demo.token);
    expect(await findings(caller, { needles, paths })).toEqual([]);
    expect(local.output).not.toMatch(/Agents in code (can|have)/);
  });
});

linuxDescribe('a process that hides', () => {
  // Another user than root, whom the system denies nothing.
  const ids = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const sandbox = JSON.stringify(join(ROOT, 'dist/libs/sandbox/src/index.js'));

  /**
   * What another process of the same user reads of this one: of its environment and its memory.
   * @param looks how often to look for its debugger, which starts in a thread of its own
   */
  async function seenOf(
    code: string,
    looks: number,
  ): Promise<{ environ: boolean; memory: boolean; debugger: boolean }> {
    const worker = spawn(
      process.execPath,
      [
        '-e',
        `${code}; process.on('message', () => process.send(require('inspector').url() ?? 'none')); process.send('');`,
      ],
      { ...ids, cwd: '/', env: { SECRET: MASTER_KEY }, stdio: ['ignore', 'inherit', 'ignore', 'ipc'] },
    );
    await once(worker, 'message');
    const reader = spawn(
      process.execPath,
      [
        '-e',
        `const { openSync, readFileSync } = require('fs');
        const can = (look) => { try { return look(); } catch { return false; } };
        process.send({
          environ: can(() => readFileSync('/proc/${worker.pid}/environ', 'utf8').includes('SECRET')),
          memory: can(() => openSync('/proc/${worker.pid}/mem', 'r') > 0),
        });
        process.kill(${worker.pid}, 'SIGUSR1');`,
      ],
      { ...ids, cwd: '/', env: {}, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    );
    const [seen] = (await once(reader, 'message')) as [{ environ: boolean; memory: boolean }];
    await once(reader, 'exit');
    let url = 'none';
    for (let look = 0; look < looks && url === 'none'; look++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      worker.send('');
      [url] = (await once(worker, 'message')) as [string];
    }
    worker.kill('SIGKILL');
    return { ...seen, debugger: url !== 'none' };
  }

  it('shows others of its user neither environment nor memory, and opens no debugger', async () => {
    expect(await seenOf('', Infinity)).toEqual({ environ: true, memory: true, debugger: true });
    const hidden = await seenOf(`require(${sandbox}).hideProcess()`, 10);
    expect(hidden).toEqual({ environ: false, memory: false, debugger: false });
  });
});

describe('an agent in code', () => {
  const folder = folderWithSecret();
  let stack: Stack;
  let tenants: TestTenant[];

  beforeAll(async () => {
    const env = {
      BATON_AGENTS_DIR: AGENTS,
      EXECUTOR_TENANT_PROCESSES: '2',
      BATON_MASTER_KEY: MASTER_KEY,
      DATABASE_SYSTEM_KEY: SYSTEM_KEY,
    };
    stack = await Stack.start({ driver: DRIVERS[0]!, env });
    tenants = [];
    for (let count = 0; count < 3; count++) tenants.push(await stack.createTenant());
  });
  afterAll(async () => {
    await stack.stop();
    rmSync(folder, { recursive: true });
  });

  const send = async (tenant: number, text: string) => {
    const caller = new RawCaller(stack.url(0, 'hoarder'), tenants[tenant]!.token);
    const answer = await caller.call('SendMessage', sendParams(text));
    return JSON.parse(textOf(answer)) as { pid: number; heard: string[]; files: string[] };
  };

  sandboxIt('finds no secret in processes, files, memory, descriptors or by a debugger', async () => {
    const { token } = tenants[0]!;
    const needles = [MASTER_KEY, SYSTEM_KEY, token, new URL(stack.database.url).password];
    const paths = [folder, join(folder, '.env'), tmpdir()];
    expect(await findings(new RawCaller(stack.url(0, 'prober'), token), { needles, paths })).toEqual([]);
    expect(stack.workers[0]!.log()).not.toMatch(/Agents in code (can|have)/);
  });

  it('with a process per tenant keeps variables and temporary files of tenants apart', async () => {
    const [first, second] = [await send(0, 'of the first'), await send(1, 'of the second')];
    expect(first.heard).toEqual(['of the first']);
    expect(second.heard).toEqual(['of the second']);
    expect(second.files).toEqual(['of-the-second']);
    const again = await send(0, 'again');
    expect(again).toMatchObject({ pid: first.pid, heard: ['of the first', 'again'] });
    expect(again.files.sort()).toEqual(['again', 'of-the-first']);
  });

  nightlyIt(
    'with a process per tenant ends the process that is idle longest if another tenant needs one',
    async () => {
      const second = await send(1, 'later');
      const third = await send(2, 'of the third');
      expect(third.heard).toEqual(['of the third']);
      // Longest idle was the first one.
      expect((await send(1, 'last')).pid).toBe(second.pid);
      expect((await send(0, 'new')).heard).toEqual(['new']);
    },
  );

  nightlyIt(
    'with a process per tenant lets a tenant wait only for the turns that others have begun',
    async () => {
      const gate = join(folder, 'gate');
      const busy = [send(0, `until ${gate}`), send(1, `until ${gate}`)];
      for (const tenant of [0, 1]) while (!(await send(tenant, 'look')).heard.includes(`until ${gate}`));
      let hasBegun = false;
      const third = send(2, 'in between').then((answer) => {
        hasBegun = true;
        return answer;
      });
      // The older of the two processes, that of the second tenant, ends after its turn. The other one takes new turns.
      const next = await send(0, 'next');
      expect(next.heard).toContain(`until ${gate}`);
      expect(hasBegun).toBe(false);
      writeFileSync(gate, '');
      expect((await third).heard).toContain('in between');
      await Promise.all(busy);
    },
  );
});
