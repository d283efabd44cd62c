import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { A2AError } from '@a2a-js/sdk/errors';
import { remoteFailure } from '../runtimes/remote-a2a/remote-failure.js';
import { serverFailure } from '../runtimes/llm/tools/mcp/explain-failure.js';
import { Redactor } from './redactor.js';

const SECRET = 'p@ss/word "4711" ümlaut';
const QUOTES = [
  SECRET,
  `Bearer ${SECRET}`,
  encodeURIComponent(SECRET),
  JSON.stringify({ authorization: SECRET }),
  Buffer.from(SECRET).toString('base64'),
  `${SECRET}${SECRET}`,
];
const redactor = new Redactor([SECRET, 'abc']);

it.each(QUOTES)('is taken out of %j', (quote) => {
  const shown = [
    redactor.text(quote),
    remoteFailure(new A2AError(`denied: ${quote}`), 'host', redactor),
    remoteFailure(new TypeError(`bad header: ${quote}`), 'host', redactor),
    serverFailure(new McpError(-32000, `denied: ${quote}`), redactor),
    serverFailure(new Error('outer', { cause: new Error(quote) }), redactor),
  ];
  for (const one of shown) {
    const text =
      one instanceof Error ? `${one.message} ${String(one.stack)} ${JSON.stringify(one.cause ?? '')}` : one;
    for (const form of QUOTES) expect(text).not.toContain(form);
    expect(text).not.toContain('4711');
  }
});

it('leaves the rest unchanged, also text that resembles a very short secret', () => {
  expect(redactor.text(`an abc of ${SECRET}!`)).toBe('an abc of [secret]!');
});
