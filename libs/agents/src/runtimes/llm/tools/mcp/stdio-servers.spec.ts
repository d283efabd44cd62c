import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenTools } from '../tool-sources.js';
import { McpBench, call } from './mcp-tools.fixture.js';

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
