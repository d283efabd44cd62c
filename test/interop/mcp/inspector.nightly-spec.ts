// The Inspector of MCP (@modelcontextprotocol/inspector) without windows, on one running Baton, in both eras.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DRIVERS } from '../../support/index.js';
import { Stack } from '../../support/stack.js';
import { describePrepared } from '../../support/prepared.js';

const RUN = join(__dirname, 'run');

describePrepared(RUN, 'the Inspector of MCP', () => {
  let stack: Stack;
  let token: string;

  beforeAll(async () => {
    stack = await Stack.start({ driver: DRIVERS[0]!, apis: 1, workers: 1 });
    ({ token } = await stack.createTenant());
  });
  afterAll(() => stack.stop());

  const inspect = async (era: string, ...args: string[]): Promise<string> => {
    const server = [`${stack.apis[0]!.url}/mcp`, '--transport', 'http', '--protocol-era', era];
    const header = ['--header', `Authorization: Bearer ${token}`];
    const all = [RUN, 'inspector', ...server, ...header, '--format', 'json', '--quiet', ...args];
    return (await promisify(execFile)('bash', all)).stdout;
  };

  it.each(['legacy', 'modern'])('lists the agents and calls one, as a client of the %s era', async (era) => {
    expect(await inspect(era, '--method', 'tools/list')).toContain('"echo"');
    const call = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=Hello, Inspector'];
    expect(await inspect(era, ...call)).toContain('Hello, Inspector');
  });
});
