import fc from 'fast-check';

const deep = (depth: number): unknown => {
  let value: unknown = 'bottom';
  for (let i = 0; i < depth; i += 1) value = i % 2 ? [value] : { deep: value };
  return value;
};

/** Texts that break some programs. Nothing in them resembles an error of ours. */
const ODD_TEXTS = [
  '',
  ' ',
  '\0',
  '\ud83d',
  '\udc00\ud83d',
  '\u202e',
  '\ufeff',
  'ﷺ',
  '👩‍👩‍👧',
  'İ',
  '\r\n\r\n',
  '\n\ndata: {}\n\n',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'NaN',
  '-1',
  '1e999',
  '0x10',
  '%00',
  '%s%n',
  '../../etc',
  "' OR 1=1 --",
  '"; DROP TABLE x; --',
  '$1',
  '${7*7}',
  '{{7*7}}',
  '<script>',
  'a'.repeat(5_000),
  '=\u0000=',
  'data:,',
  '00000000-0000-0000-0000-000000000000',
  'TASK_STATE_WORKING',
  'ROLE_USER',
  '2026-02-31T25:00:00Z',
];

const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...ODD_TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  // Any UTF-16 unit, halves of pairs included.
  {
    weight: 1,
    arbitrary: fc.string({
      unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    }),
  },
);

const oddNumber = fc.constantFrom(
  0,
  -0,
  -1,
  1,
  0.5,
  1e-9,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  2 ** 53,
  2 ** 63,
  1e308,
  -1e308,
);

/** Values in the place of what belongs there. */
export const junk: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: oddText },
  { weight: 3, arbitrary: oddNumber },
  { weight: 3, arbitrary: fc.constantFrom<unknown>(null, true, false, [], {}, [null], [[]], { length: 3 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>({ toString: 1, valueOf: 1 }, { then: 1 }, { toJSON: 'x' }),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('{"__proto__":{"a":1}}', '{"constructor":{"prototype":{"a":1}}}')
      .map((text) => JSON.parse(text) as unknown),
  },
  { weight: 1, arbitrary: fc.constantFrom(150, 205, 1_000).map(deep) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
);

export { oddText };
