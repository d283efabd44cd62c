// The conformance suite of MCP (@modelcontextprotocol/conformance) on one running Baton, in each revision that it has.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DRIVERS } from '../../support/index.js';
import { Stack } from '../../support/stack.js';
import { EXPECTED_FAILURES } from './expected-failures.js';
import { KitProxy } from './kit-proxy.js';
import { describePrepared } from '../../support/prepared.js';

const RUN = join(__dirname, 'run');
const PAGE = readFileSync(join(__dirname, '../../../docs/calling/conformance.md'), 'utf8');

interface Check {
  id: string;
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  errorMessage?: string;
}

describePrepared(RUN, 'the conformance suite of MCP', () => {
  let stack: Stack;
  let proxy: KitProxy;
  const results = mkdtempSync(join(tmpdir(), 'baton-mcp-'));

  beforeAll(async () => {
    proxy = await KitProxy.start();
    const env = {
      BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      BATON_AGENTS_DIR: join(__dirname, 'agents'),
      CORS_ORIGINS: proxy.origin,
    };
    stack = await Stack.start({ driver: DRIVERS[0]!, apis: 1, workers: 1, env });
    proxy.forwardTo(`${stack.apis[0]!.url}/mcp`, (await stack.createTenant()).token);
  });
  afterAll(async () => {
    proxy.close();
    rmSync(results, { recursive: true });
    await stack.stop();
  });

  it.each(Object.entries(EXPECTED_FAILURES))(
    'in %s only what is explained fails',
    async (revision, expected) => {
      const folder = join(results, revision);
      const args = [RUN, 'server', '--url', `${proxy.origin}/mcp`, '--requirements', revision, '-o', folder];
      await once(spawn('bash', args, { stdio: 'ignore' }), 'exit');
      const failed = Object.fromEntries(
        readdirSync(folder)
          .map((name) => [scenarioOf(name), failuresIn(join(folder, name, 'checks.json'))] as const)
          .filter(([, checks]) => checks.length > 0),
      );
      expect(failed).toEqual(expected);
    },
  );

  it('has a reason in the documentation for each scenario that fails', () => {
    const scenarios = Object.values(EXPECTED_FAILURES).flatMap((each) => Object.keys(each));
    expect(scenarios.filter((name) => !PAGE.includes(`\`${name}\``))).toEqual([]);
  });
});

/** The folder of a scenario ends with the time. */
const scenarioOf = (folder: string): string =>
  folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');

const failuresIn = (file: string): string[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as Check[])
    .filter((check) => check.status === 'FAILURE')
    .map(({ id }) => id)
    .sort();
