// The SDKs of MCP as clients of one running Baton, in both eras. Each program prints a line for each of its checks.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { DRIVERS } from '../support/index.js';
import { Stack } from '../support/stack.js';
import { whatIsMissing } from '../support/prepared.js';

const CHECKS = ['tools', 'call', 'progress', 'files', 'long', 'question', 'errors', 'token'];
const BOTH_ERAS = ['2026-07-28', '2025-11-25'].flatMap((era) => CHECKS.map((check) => `${era} ${check}`));
const TASKS = ['task', 'task with a question', 'canceled task'].map((check) => `2026-07-28 ${check}`);

/** Each SDK: the `run` of its folder, what that is started with, and what is checked. */
const CLIENTS: Record<string, { folder: string; args?: string[]; checks: string[] }> = {
  Python: { folder: 'fastmcp', args: ['--sdk'], checks: BOTH_ERAS },
  'TypeScript v2': { folder: 'mcp-typescript', checks: [...BOTH_ERAS, ...TASKS] },
  Go: { folder: 'mcp-go', checks: BOTH_ERAS },
  Rust: { folder: 'mcp-rust', checks: [...BOTH_ERAS, ...TASKS] },
};

const programOf = (folder: string): string => join(__dirname, folder, 'run');

let stack: Stack;
let args: string[];

beforeAll(async () => {
  // Calls that take longer hand over the id of their task.
  const env = { SEND_WAIT_MS: '1500', BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
  stack = await Stack.start({ driver: DRIVERS[0]!, apis: 1, workers: 1, env });
  args = [`${stack.apis[0]!.url}/mcp`, (await stack.createTenant()).token];
});
afterAll(() => stack.stop());

describe.each(Object.entries(CLIENTS))('the SDK of MCP in %s', (_, { folder, args: first = [], checks }) => {
  const missing = whatIsMissing(programOf(folder));

  (missing === undefined ? it : it.skip)(`passes its checks ${missing ?? ''}`, async () => {
    const program = spawn('bash', [programOf(folder), ...first, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const said = (await text(program.stdout)).trim().split('\n');
    expect(said.sort()).toEqual(checks.map((check) => `ok ${check}`).sort());
  });
});
