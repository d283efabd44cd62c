import fc from 'fast-check';

/** How messages go over the wire: one JSON body, an event stream, or lines. */
export type Framing = 'json' | 'stream' | 'lines';

/** The bytes of an answer to a call of an MCP tool, as servers send them, with something done to them. */
export interface RecordedAnswer {
  /** Numbers of MESSAGES, in the order in which they are sent. */
  messages: number[];
  act: 'none' | 'cut' | 'double' | 'begin twice' | 'rotate' | 'interleave';
  /** Where it is done. */
  at: number;
}

/** Messages that servers were seen to send during a call. `$id` is the id of the request. */
const MESSAGES = [
  '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1,"total":2}}',
  '{"method":"notifications/message","params":{"level":"info","data":"looking \u00fc"},"jsonrpc":"2.0"}',
  '{"result":{"content":[{"type":"text","text":"seen"}],"structuredContent":{"n":1},"isError":false},"jsonrpc":"2.0","id":$id}',
  '{"jsonrpc":"2.0","id":$id,"error":{"code":-32000,"message":"Quota exceeded"}}',
  '{"jsonrpc":"2.0","id":"ping-1","method":"ping"}',
];

export const recordedAnswer: fc.Arbitrary<RecordedAnswer> = fc.record({
  messages: fc.oneof(
    fc.constantFrom<number[]>([2], [0, 2], [1, 0, 2], [3]),
    fc.array(fc.nat(MESSAGES.length - 1), { minLength: 1, maxLength: 5 }),
  ),
  act: fc.constantFrom('none', 'cut', 'double', 'begin twice', 'rotate', 'interleave'),
  at: fc.nat(2_000),
});

/** The text of an answer. `$id` in it stands for the id of the request. */
export function textOf({ messages, act, at }: RecordedAnswer, framing: Framing): string {
  const texts = messages.map((number) => MESSAGES[number] ?? '');
  const text =
    framing === 'stream'
      ? texts.map((each, n) => `${n % 2 ? `id: ${n}\n` : ''}event: message\ndata: ${each}\n\n`).join('')
      : framing === 'lines'
        ? texts.map((each) => `${each}\n`).join('')
        : texts.length === 1
          ? (texts[0] ?? '')
          : `[${texts.join()}]`;
  const place = at % (text.length + 1);
  switch (act) {
    case 'none':
      return text;
    case 'cut':
      return text.slice(0, place);
    case 'double':
      return text + text;
    case 'begin twice':
      return text.slice(0, place) + text;
    case 'rotate':
      return text.slice(place) + text.slice(0, place);
    case 'interleave': {
      const size = (at % 40) + 1;
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, n) =>
        text.slice(n * size, (n + 1) * size),
      );
      return pieces.flatMap((piece, n) => [piece, pieces[(n + 3) % pieces.length] ?? '']).join('');
    }
  }
}
