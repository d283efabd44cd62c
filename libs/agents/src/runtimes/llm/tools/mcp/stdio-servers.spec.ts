import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenTools } from '../tool-sources.js';
import type { GuardedTurn } from '../../../../secret-guard.js';
import { firstTurn, turnSecrets } from '../../../../../../../test/support/agents/turns.js';
import { McpBench, call } from './mcp-tools.fixture.js';
import type { McpTools } from './mcp-tools.js';

const STDIO_SERVER = join(__dirname, '../../../../../../../test/support/mcp-server/stdio-server.mjs');

const bench = new McpBench();
afterEach(() => bench.reset());
afterAll(() => bench.stop());

describe('MCP tools of a command', () => {
  beforeEach(() => {
    bench.stdioAllow = `NOTES_TOKEN= ${process.execPath} ${STDIO_SERVER}`;
  });
  const notes = {
    name: 'notes',
    command: process.execPath,
    args: [STDIO_SERVER, 'extra'],
    // A process starts slowly where the CPU is scarce.
    connectTimeout: '5m',
  };
  const answer = async (opened: OpenTools, name: string): Promise<unknown> =>
    JSON.parse(String((await call(opened, name)).content));

  it('get the arguments and variables that they are given, and nothing of the platform', async () => {
    process.env.BATON_MASTER_KEY_TEST = 'k';
    const opened = await bench.open([{ ...notes, env: { NOTES_TOKEN: { secret: 'tracker' } } }]);
    expect(await answer(opened, 'notes_arguments')).toEqual(['extra']);
    const environment = (await answer(opened, 'notes_environment')) as Record<string, string>;
    // The server has got the value. What it says of it is not shown.
    expect(environment.NOTES_TOKEN).toBe('[secret]');
    expect(Object.keys(environment).filter((name) => /BATON|DATABASE|REDIS|TEST/.test(name))).toEqual([]);
  });

  it('end with the turn, and with them whatever they have started', async () => {
    const opened = await bench.open([notes]);
    const { pid, child } = (await answer(opened, 'notes_stay')) as { pid: number; child: number };
    expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
    await opened.close();
    await untilGone(pid);
    await untilGone(child);
  });

  it('end with the turn what a server that has crashed had started', async () => {
    const opened = await bench.open([notes]);
    const { pid, child } = (await answer(opened, 'notes_stay')) as { pid: number; child: number };
    process.kill(pid, 'SIGKILL');
    await untilGone(pid);
    await opened.close();
    await untilGone(child);
  });

  it('fail for the model when they crash, and are started again', async () => {
    const opened = await bench.open([{ ...notes, mayRepeat: ['crash'] }]);
    expect(await call(opened, 'notes_crash')).toMatchObject({ ok: false });
    expect(await answer(opened, 'notes_arguments')).toEqual(['extra']);
  });
});

describe('a command that is kept', () => {
  const kept = {
    name: 'notes',
    command: process.execPath,
    args: [STDIO_SERVER],
    keep: '10m',
    connectTimeout: '5m',
  };
  let source: McpTools;
  beforeEach(() => {
    bench.stdioAllow = `NOTES_TOKEN= ${process.execPath} ${STDIO_SERVER}`;
    source = bench.source();
  });

  /** A turn that calls a tool. @returns its answer, and the model's input about the program */
  async function turnOf(
    { server = kept, tool = 'notes_count' }: { server?: object; tool?: string },
    turn: Partial<GuardedTurn> = {},
  ): Promise<{ said: { count: number; pid: number }; notes: readonly string[] | undefined }> {
    const secrets = turnSecrets(Object.fromEntries(bench.secrets));
    const opened = await bench.openWith(source, [server], { turn, secrets });
    const { content } = await call(opened, tool);
    await opened.close();
    return { said: JSON.parse(String(content)) as { count: number; pid: number }, notes: opened.notes };
  }
  const contextOf = (contextId: string): Partial<GuardedTurn> => ({
    task: { ...firstTurn('hi').task, contextId },
  });

  it('keeps its memory from turn to turn of a context', async () => {
    const first = await turnOf({});
    expect((await turnOf({})).said).toEqual({ count: 2, pid: first.said.pid });
    await source.onApplicationShutdown();
    await untilGone(first.said.pid);
  });

  it('is another one for another context, owner, tenant, agent, version, secret or setting', async () => {
    const withToken = { ...kept, env: { NOTES_TOKEN: { secret: 'tracker' } } };
    bench.keptPrograms = 100;
    source = bench.source();
    await turnOf({ server: withToken }, { owner: 'token:1' });
    const base = firstTurn('hi').agent;
    const others: Partial<GuardedTurn>[] = [
      { owner: 'token:2' },
      { ...contextOf('context-2'), owner: 'token:1' },
      { tenantId: 'tenant-2', owner: 'token:1' },
      { agent: { ...base, id: 'another' }, owner: 'token:1' },
      { agent: { ...base, version: 2 }, owner: 'token:1' },
    ];
    for (const turn of others) expect((await turnOf({ server: withToken }, turn)).said.count).toBe(1);
    const changed = { ...withToken, timeout: '50s' };
    expect((await turnOf({ server: changed }, { owner: 'token:1' })).said.count).toBe(1);
    expect((await turnOf({ server: withToken }, { owner: 'token:1' })).said.count).toBe(2);
    bench.secrets.set('tracker', 'another');
    expect((await turnOf({ server: withToken }, { owner: 'token:1' })).said.count).toBe(1);
    bench.secrets.set('tracker', 's3cret');
  });

  it('is not shared by two turns: the second one has one of its own, which ends with it', async () => {
    const first = await bench.openWith(source, [kept]);
    const second = await turnOf({});
    expect(second.said.count).toBe(1);
    await untilGone(second.said.pid);
    await call(first, 'notes_count');
    await first.close();
    expect((await turnOf({})).said.count).toBe(2);
  });

  it('is started anew after a crash, and the model of a later turn reads that its memory is gone', async () => {
    const server = { ...kept, neverRepeat: ['crash'] };
    expect((await turnOf({ server })).notes).toEqual([]);
    const opened = await bench.openWith(source, [server]);
    await call(opened, 'notes_crash');
    await opened.close();
    const { said, notes } = await turnOf({ server }, { earlierTasks: async () => [firstTurn('hi').task] });
    expect(said.count).toBe(1);
    expect(notes).toEqual([
      'The tool server "notes" has just been started. What it held of earlier messages, such as open pages or sign-ins, is gone.',
    ]);
    expect((await turnOf({ server }, { attempt: 2 })).notes).toEqual([]);
  });

  it('is replaced when it has been killed between two turns', async () => {
    const { said } = await turnOf({});
    process.kill(said.pid, 'SIGKILL');
    await untilGone(said.pid);
    expect((await turnOf({})).said.count).toBe(1);
  });
});

describe('a command that is no MCP server', () => {
  const shell = (script: string, more: object = {}) => {
    bench.stdioAllow = 'NOTES_TOKEN= /bin/sh';
    return bench.open([{ name: 'notes', command: '/bin/sh', args: ['-c', script], ...more }]);
  };

  it('and ends: the reason has what it wrote on standard error, without secrets', async () => {
    const opening = shell('echo "the token $NOTES_TOKEN is refused" >&2; exit 2', {
      connectTimeout: '5m',
      env: { NOTES_TOKEN: { secret: 'tracker' } },
    });
    const reason = 'its program ended with exit code 2 before it answered: "the token [secret] is refused"';
    await expect(opening).rejects.toThrow(reason);
  });

  it('and stays: the reason names the setting, and what it wrote on standard output', async () => {
    const opening = shell('echo "Usage: notes FILE"; cat >/dev/null', { connectTimeout: '3s' });
    await expect(opening).rejects.toThrow(
      'it gives no answer in time (connectTimeout is 3s): "Usage: notes FILE". Raise connectTimeout',
    );
  });
});

/** A process that has ended may stay in the table of processes, as a zombie. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && process.platform !== 'linux';
  }
}

async function untilGone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
}
