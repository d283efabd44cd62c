// FastMCP as a client of one running Baton: calls, questions and tasks. The program prints a line for each of its checks.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { DRIVERS } from '../../support/index.js';
import { Stack } from '../../support/stack.js';
import { describePrepared } from '../../support/prepared.js';

const RUN = join(__dirname, 'run');

describePrepared(RUN, 'the client of FastMCP', () => {
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
