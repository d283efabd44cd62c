import fc from 'fast-check';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { McpBench, call } from '../../libs/agents/src/runtimes/llm/tools/mcp/mcp-tools.fixture.js';
import { RawMcpServer } from '../support/mcp-server/raw-server.js';
import { recordedAnswer, textOf } from './recorded-answers.js';

const PROGRAM = join(__dirname, '../support/mcp-server/raw-stdio.js');

const bench = new McpBench();
afterEach(() => bench.reset());
afterAll(() => bench.stop());

/** After every answer the call has ended, was made once, and the model has a result. */
async function expectOneCall(settings: object, calls: () => number): Promise<void> {
  const opened = await bench.open([{ name: 'a', timeout: '5s', connectTimeout: '1m', ...settings }]);
  const { ok, content, text = content } = await call(opened, 'a_look');
  await opened.close();
  expect(calls()).toBe(1);
  expect(text).toEqual(expect.stringMatching(ok ? /\S/ : /^The call of look at a failed: \S/));
}

describe('a call of a tool ends once, whatever becomes of the bytes of its answer', () => {
  it.each(['json', 'stream'] as const)('over HTTP: %s', async (framing) => {
    await fc.assert(
      fc.asyncProperty(recordedAnswer, async (one) => {
        const body = textOf(one, framing).replaceAll('$id', '2');
        const quirks = { 'tools/call': { body } };
        const server = await RawMcpServer.start({ quirks, stream: framing === 'stream' });
        try {
          // A stream that ends before an answer is a broken connection, after which a call may be repeated.
          const neverRepeat = framing === 'stream' ? ['look'] : [];
          await expectOneCall({ url: server.url, neverRepeat }, () => server.calls);
        } finally {
          await server.stop();
        }
      }),
      { numRuns: framing === 'json' ? 40 : 15 },
    );
  });

  it('over stdio', async () => {
    const file = join(tmpdir(), 'recorded-calls');
    bench.stdioAllow = `${process.execPath} ${PROGRAM}`;
    await fc.assert(
      fc.asyncProperty(recordedAnswer, async (one) => {
        writeFileSync(file, '');
        const quirks = { 'tools/call': { raw: textOf(one, 'lines') } };
        const args = [PROGRAM, JSON.stringify(quirks), file];
        await expectOneCall(
          { command: process.execPath, args },
          () => readFileSync(file, 'utf8').split('\n').length - 1,
        );
      }),
      { numRuns: 8 },
    );
  });
});
