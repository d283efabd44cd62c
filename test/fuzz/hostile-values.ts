import fc from 'fast-check';
import { junk, oddText } from './junk.js';
import { mutationsOf } from './mutate.js';

/** Regular expressions: some take exponential time, some are none at all. */
const PATTERNS = [
  '^(a+)+$',
  '^(a|aa)+$',
  '(.*)*$',
  '^(\\w+\\s?)*$',
  '(?=(a+))\\1',
  '^(?:a?){40}a{40}$',
  '(a{1,9}){1,9999}',
  '(',
  '[',
  '\\',
  '(?<n>a)(?<n>b)',
  '\\p{Script=Greek}',
  '[\\ud800-\\udfff]',
  'a{99999999}',
  '\\1(\\1)',
  '',
];
export const pattern = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...PATTERNS) },
  { weight: 1, arbitrary: oddText },
);

const CRONS = [
  '0 8 * * 1-5',
  '*/5 * * * *',
  '* * * * * *',
  '@daily',
  '0 0 31 2 *',
  '0 0 29 2 1',
  '0 0 L * *',
  '0 0 * * 1#5',
  '@reboot',
  '60 * * * *',
  '*/0 * * * *',
  '0-59/1,0-59/1 * * * *',
  '5-1 * * * *',
  '? ? ? ? ?',
  '* * * *',
  '',
  '1e1 * * * *',
  '0 0 1 1 * 2020',
  'H H * * *',
  `${'0,'.repeat(90)}0 0 1 1 *`,
  `${'0,'.repeat(9_000)}0 * * * *`,
];
export const cron = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...CRONS) },
  { weight: 1, arbitrary: oddText },
);

/** Each step doubles the work of a check of a value against it. */
function doubling(steps: number): object {
  const $defs: Record<string, object> = { d0: { type: 'string', pattern: '^(a+)+$' } };
  for (let n = 1; n <= steps; n++) {
    const before = { $ref: `#/$defs/d${n - 1}` };
    $defs[`d${n}`] = { allOf: [{ not: { not: before } }, before] };
  }
  return { type: 'object', properties: { value: { $ref: `#/$defs/d${steps}` } }, $defs };
}

const wide = (count: number): object => ({
  type: 'object',
  properties: Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, { type: 'string' }])),
});

function nested(depth: number): object {
  let schema: object = { type: 'string' };
  for (let n = 0; n < depth; n++)
    schema = n % 2 ? { allOf: [schema] } : { type: 'object', not: { not: schema } };
  return { type: 'object', properties: { value: schema } };
}

const REFS = [
  '#',
  '#/$defs/a',
  '#/$defs/b',
  '#a',
  '#/properties/__proto__',
  '#/%7E0',
  '#/$defs/a/$ref',
  '',
  'http://127.0.0.1:1/schema.json',
  'file:///etc/passwd',
  '//x',
  'urn:a',
  'a.json',
  '#/%zz',
];

/** JSON schemas: nested, in circles, with keywords of any type. */
const { schema: anySchema } = fc.letrec<{ schema: unknown; map: unknown; list: unknown }>((tie) => ({
  map: fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', 'value', '__proto__'), oddText), tie('schema'), {
    maxKeys: 3,
  }),
  list: fc.array(tie('schema'), { maxLength: 3 }),
  schema: fc.oneof(
    { maxDepth: 5, withCrossShrink: false },
    fc.oneof(
      fc.constantFrom<unknown>(
        true,
        false,
        { type: 'string' },
        { type: 'integer' },
        { type: ['null', 'array'] },
      ),
      fc.constantFrom(...REFS).map(($ref) => ({ $ref })),
      pattern.map((text) => ({ type: 'string', pattern: text })),
      fc.constantFrom('email', 'regex', 'uri', 'date-time', 'x').map((format) => ({ format })),
      junk,
    ),
    fc.record(
      {
        allOf: tie('list'),
        anyOf: tie('list'),
        oneOf: tie('list'),
        prefixItems: tie('list'),
        not: tie('schema'),
        if: tie('schema'),
        then: tie('schema'),
        items: tie('schema'),
        contains: tie('schema'),
        unevaluatedProperties: tie('schema'),
        propertyNames: tie('schema'),
        $defs: tie('map'),
        properties: tie('map'),
        dependentSchemas: tie('map'),
        patternProperties: fc.dictionary(pattern, tie('schema'), { maxKeys: 2 }),
        enum: fc.array(junk, { maxLength: 3 }),
        const: junk,
        required: junk,
        multipleOf: junk,
        maxLength: junk,
        $id: fc.constantFrom(...REFS),
        $anchor: oddText,
        $dynamicRef: fc.constantFrom(...REFS),
        $schema: fc.constantFrom('http://json-schema.org/draft-07/schema#', 'http://x/', 'a', ''),
      },
      { requiredKeys: [] },
    ),
  ),
}));

/** In the place of an agent's or a tool's schema of an object. */
export const objectSchema: fc.Arbitrary<unknown> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(anySchema, anySchema)
      .map(([value, a]) => ({ type: 'object', properties: { value }, $defs: { a } })),
  },
  { weight: 1, arbitrary: fc.constantFrom(8, 16, 24, 40).map(doubling) },
  { weight: 1, arbitrary: fc.constantFrom(20, 60, 100, 700).map(nested) },
  { weight: 1, arbitrary: fc.constantFrom(100, 2_000, 12_000).map(wide) },
  { weight: 1, arbitrary: anySchema },
);

/** What stands in the place of a member of something that a tenant, a model or a tool writes. */
const hostile: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 10, arbitrary: junk },
  { weight: 2, arbitrary: fc.oneof(pattern, cron) },
  { weight: 1, arbitrary: objectSchema },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(
      'x'.repeat(300_000),
      '*'.repeat(100),
      '\n'.repeat(100_000),
      '{{'.repeat(5_000),
      Array.from({ length: 5_000 }, (_, n) => n),
      Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`name-${n}`, n])),
    ),
  },
);

/** Changes of something that is right, by which it becomes wrong, large or strange. */
export const hostileChanges = mutationsOf(hostile, 2);
