import { mayReceive, originRefusal } from '@baton/a2a';
import { McpBench } from './runtimes/llm/tools/mcp/mcp-tools.fixture.js';
import { KEY, LlmBench, summaryOf } from './runtimes/llm/llm-runtime.fixture.js';
import { SecretReader } from './secret-reader.js';
import { Elsewhere, endOf, turnAt } from '../../../test/support/agents/remote.js';
import {
  agent,
  collect,
  FixedAgents,
  firstTurn,
  summary,
  turnSecrets,
} from '../../../test/support/agents/turns.js';
import { indexOf } from './runtimes/index-agent/index-runtime.fixture.js';

/** Secrets that only these destinations may receive. */
class BoundSecrets extends SecretReader {
  constructor(private readonly origins: string[]) {
    super();
  }

  override get(_tenantId: string, name: string, destinations: readonly string[]): Promise<string> {
    const refused = destinations.find((destination) => !mayReceive(this.origins, destination));
    if (refused === undefined) return Promise.resolve(KEY);
    // As @baton/identity throws it.
    return Promise.reject(
      Object.assign(new Error(originRefusal(name, refused, 'node bin/baton.cjs')), { name: 'SecretError' }),
    );
  }
}

const secretsFor = (...origins: string[]) => turnSecrets({}, new BoundSecrets(origins));
const never = new AbortController().signal;

// Settings that were stored before the origins of their secrets changed: a run checks them again.
describe('a run refuses to send a secret to a place that may not receive it', () => {
  it('with a model', async () => {
    const bench = await LlmBench.start();
    const turn = bench.turn({}, { secrets: secretsFor('https://api.openai.com') });
    const { status } = summaryOf(await bench.run(turn));
    expect(status?.text).toBe(
      `the secret "openai" may not be sent to ${bench.provider.origin}: a caller with the scope secrets:write can add that to ` +
        'its origins (node bin/baton.cjs secrets origins openai …)',
    );
    expect(bench.provider.requests).toHaveLength(0);
    await bench.run(bench.turn({}, { secrets: secretsFor(bench.provider.origin) }));
    expect(bench.provider.requests).toHaveLength(1);
    await bench.stop();
  });

  it('with the model of the index agent', async () => {
    const model = { model: 'openai/m', baseUrl: 'https://evil.example/v1' };
    const turn = firstTurn('?', {
      agent: agent('index', 'index'),
      secrets: secretsFor('https://api.openai.com'),
    });
    const outputs = await collect(indexOf(new FixedAgents([]), { model }).run(turn, never));
    expect(JSON.stringify(summary(outputs))).toContain('may not be sent to https://evil.example');
  });

  it('with an agent elsewhere, also with the origins of its card', async () => {
    const elsewhere = new Elsewhere();
    const remote = await elsewhere.start();
    const { origin } = new URL(remote.url);
    const headers = { Authorization: { secret: 'key', prefix: 'Bearer ' } };
    for (const [origins, secrets] of [
      [[], secretsFor('https://crm.example')],
      [['https://crm.example'], secretsFor(origin)],
    ] as const) {
      const outputs = await elsewhere.run(turnAt(remote.url, 'hi', { headers, origins }, { secrets }));
      expect(JSON.stringify(endOf(outputs))).toContain('may not be sent to');
    }
    await elsewhere.close();
  });

  it('with MCP servers, at a URL and as a program', async () => {
    const bench = new McpBench();
    bench.stdioAllow = 'KEY= npx -y';
    const value = { secret: 'crm', prefix: '' };
    const secrets = secretsFor('https://crm.example', 'stdio:npx -y @acme/crm');
    for (const [server, destination] of [
      [{ url: 'https://evil.example/mcp', headers: { 'x-key': value } }, 'https://evil.example'],
      [{ command: 'npx', args: ['-y', '@evil/crm'], env: { KEY: value } }, 'stdio:npx -y @evil/crm'],
    ] as const) {
      await expect(bench.open([{ name: 'x', ...server }], { secrets })).rejects.toThrow(
        `The MCP server "x" cannot be used: the secret "crm" may not be sent to ${destination}`,
      );
    }
    await bench.reset();
    await bench.stop();
  });
});
