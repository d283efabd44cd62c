// The auth scenarios of the conformance suite of MCP for clients: the suite plays the tool server and its authorization server, an agent of one
// running Baton is the client, and `auth-client.mjs` its caller, who signs in.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DRIVERS } from '../../support/index.js';
import { ModelProvider } from '../../support/model-provider/model-provider.js';
import { freePort } from '../../support/ports.js';
import { Stack } from '../../support/stack.js';
import { describePrepared } from '../../support/prepared.js';

const RUN = join(__dirname, 'run');
const CLIENT = join(__dirname, 'auth-client.mjs');

/** All but those of extensions, and those that docs/calling/conformance.md explains. */
const SCENARIOS = [
  'metadata-default',
  'metadata-var1',
  'metadata-var2',
  'metadata-var3',
  'basic-cimd',
  'scope-from-www-authenticate',
  'scope-from-scopes-supported',
  'scope-omitted-when-undefined',
  'scope-step-up',
  'scope-retry-limit',
  'token-endpoint-auth-basic',
  'token-endpoint-auth-post',
  'token-endpoint-auth-none',
  'pre-registration',
  '2025-03-26-oauth-metadata-backcompat',
  'resource-mismatch',
  'offline-access-scope',
  'offline-access-not-supported',
  'authorization-server-migration',
  'iss-supported',
  'iss-not-advertised',
  'iss-supported-missing',
  'iss-wrong-issuer',
  'iss-unexpected',
  'iss-normalized',
  'metadata-issuer-mismatch',
];

describePrepared(RUN, 'an agent as a client of MCP that signs in', () => {
  let stack: Stack;
  let provider: ModelProvider;
  let baton: string;
  const results = mkdtempSync(join(tmpdir(), 'baton-mcp-auth-'));

  beforeAll(async () => {
    // Links to sign in have the public URL.
    const port = String(await freePort());
    const env = {
      PORT: port,
      PUBLIC_URL: `http://127.0.0.1:${port}`,
      BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      OUTBOUND_ALLOW: '127.0.0.0/8, ::1, localhost',
    };
    [stack, provider] = await Promise.all([
      Stack.start({ driver: DRIVERS[0]!, apis: 1, workers: 1, env }),
      ModelProvider.start(),
    ]);
    // The model uses the first tool once.
    provider.answer(({ body }) => {
      const { tools, messages } = body as {
        tools?: { function: { name: string } }[];
        messages: { role: string }[];
      };
      const name = tools?.[0]?.function.name;
      const isUsed = messages.some(({ role }) => role === 'tool');
      return name === undefined || isUsed ? { text: 'done' } : { calls: [{ name, input: {} }] };
    });
    const { token } = await stack.createTenant();
    baton = JSON.stringify({ url: stack.apis[0]!.url, token, model: provider.url });
  });
  afterAll(async () => {
    await Promise.all([stack.stop(), provider.stop()]);
    rmSync(results, { recursive: true });
  });

  it.each(SCENARIOS)('passes auth/%s', async (scenario) => {
    const command = `${process.execPath} ${CLIENT}`;
    const folder = join(results, scenario);
    const args = [RUN, 'client', '--command', command, '--scenario', `auth/${scenario}`, '-o', folder];
    await once(spawn('bash', args, { stdio: 'ignore', env: { ...process.env, BATON: baton } }), 'exit');
    const checks = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('checks.json'))
      .flatMap(
        (path) => JSON.parse(readFileSync(join(folder, path), 'utf8')) as { id: string; status: string }[],
      );
    expect(checks.filter((check) => check.status === 'SUCCESS')).not.toEqual([]);
    expect(checks.filter((check) => check.status === 'FAILURE')).toEqual([]);
  });
});
