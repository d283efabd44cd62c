// FastMCP as a client of one running Baton: calls, questions and tasks. The program prints a line for each of its checks.
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { DRIVERS } from '../../support/index.js';
import { Stack } from '../../support/stack.js';

const RUN = join(__dirname, 'run');
/** The exit code of `run` if something is missing on this machine; its output says what. */
const LEFT_OUT = 3;
const { status, stdout } = spawnSync('bash', [RUN, '--prepare'], { encoding: 'utf8' });
const reason = status === LEFT_OUT ? ` (${stdout.trim()})` : '';

(reason === '' ? describe : describe.skip)(`the client of FastMCP${reason}`, () => {
  let stack: Stack;
  let said: string[];

  beforeAll(async () => {
    const env = { BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
    stack = await Stack.start({ driver: DRIVERS[0]!, apis: 1, workers: 1, env });
    const { token } = await stack.createTenant();
    const url = `${stack.apis[0]!.url}/mcp`;
    const client = spawn('bash', [RUN, '--client', url, token], { stdio: ['ignore', 'pipe', 'inherit'] });
    said = (await text(client.stdout)).trim().split('\n');
  });
  afterAll(() => stack.stop());

  it.each(['tools', 'call', 'question', 'task', 'task_with_a_question', 'cancel'])('passes: %s', (check) => {
    expect(said.filter((line) => line.includes(` ${check}`) && !line.includes(` ${check}_`))).toEqual([
      `ok ${check}`,
    ]);
  });
});
