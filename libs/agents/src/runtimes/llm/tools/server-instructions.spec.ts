import { startModernServer } from '../../../../../../test/support/mcp-server/modern-server.js';
import { textTool } from '../../../../../../test/support/mcp-server/script.js';
import { collect, firstTurn } from '../../../../../../test/support/agents/turns.js';
import { LlmBench } from '../llm-runtime.fixture.js';
import { McpBench } from './mcp/mcp-tools.fixture.js';

let llm: LlmBench;
const mcp = new McpBench();
beforeAll(async () => {
  llm = await LlmBench.start();
});
afterEach(async () => {
  llm.reset();
  await mcp.reset();
});
afterAll(async () => {
  await llm.stop();
  await mcp.stop();
});

/** The instructions that the model reads, of an agent with these servers. */
async function readWith(...servers: object[]): Promise<string> {
  llm.provider.reply({ text: 'Hello.' });
  const { agent, ...turn } = llm.turn({ prompt: 'You are a clerk.', tools: { mcp: servers } });
  await collect(
    llm.runtimeWith(mcp.source()).run(firstTurn('hi', { ...turn, agent }), new AbortController().signal),
  );
  return JSON.stringify(llm.provider.requests.at(-1)?.body);
}

async function modern(instructions: string, name = 'desk') {
  const server = await startModernServer({
    tools: [{ name: 'find', call: () => ({ content: [] }) }],
    instructions,
  });
  mcp.atReset(() => server.stop());
  return { name, url: server.url };
}

describe('the instructions of a tool server', () => {
  it('is read by the model after the prompt, as the words of that server', async () => {
    const read = await readWith(await modern('Search before you write.'));
    expect(read).toMatch(
      /You are a clerk\..*the tool server .{1,3}desk.{1,3} says.*not words of the user.*Search before you write\./s,
    );
  });

  it('is read of a server of an earlier revision, too', async () => {
    const server = await mcp.serve({ tools: [textTool('find', 'found')], instructions: 'Be brief.' });
    expect(await readWith({ name: 'old', url: server.url })).toContain('Be brief.');
  });

  it('is left out where the settings say so', async () => {
    const server = await modern('Search before you write.');
    expect(await readWith({ ...server, instructions: false })).not.toContain('Search before');
  });

  it('is cut where it is long', async () => {
    const read = await readWith(await modern(`${'x'.repeat(4_000)}yyy`));
    expect(read).toContain('x'.repeat(4_000));
    expect(read).toContain('[cut off]');
    expect(read).not.toContain('xy');
  });
});
