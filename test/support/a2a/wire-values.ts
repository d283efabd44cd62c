import fc from 'fast-check';
import { Role, type Message, type Part } from '../../../libs/a2a/src/model.js';
import { sampleMessage } from './samples.js';

// Every value that the specification allows in a message, and the ways to write it.

/** Every character: U+0000, separators of lines, and those of two code units. */
const text = fc.string({ unit: 'binary', maxLength: 12 });
const name = text.filter((key) => !/^(__proto__|constructor)$/.test(key));

/** Any google.protobuf.Value. JSON has no -0. */
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.constantFrom(null, true, false),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.maxSafeInteger(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3 }),
  ),
}));
/** Not empty: metadata without members may as well be left out. */
const struct = fc.dictionary(name, value, { minKeys: 1, maxKeys: 3 });

const content: fc.Arbitrary<NonNullable<Part['content']>> = fc.oneof(
  fc.record({ $case: fc.constant('text' as const), value: text }),
  fc.record({ $case: fc.constant('data' as const), value }),
  fc.record({
    $case: fc.constant('raw' as const),
    value: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  }),
  fc.record({ $case: fc.constant('url' as const), value: fc.webUrl() }),
);

/** Any part that each version has: texts and data have no file names in 0.3. */
const part: fc.Arbitrary<Part> = fc
  .record({ content, metadata: fc.option(struct, { nil: undefined }), filename: text, mediaType: text })
  .map((any) => {
    const isFile = any.content.$case === 'raw' || any.content.$case === 'url';
    return isFile ? any : { ...any, filename: '', mediaType: '' };
  });

/** Any message of a caller. */
export const anyMessage: fc.Arbitrary<Message> = fc
  .record({
    parts: fc.array(part, { minLength: 1, maxLength: 4 }),
    metadata: fc.option(struct, { nil: undefined }),
  })
  .map((members) => sampleMessage({ ...members, taskId: '', role: Role.ROLE_USER }));

/** How a client writes what may be written in several ways. */
export interface Spelling {
  /** Names of the proto file in place of those of JSON. */
  snakeCase: boolean;
  /** Members that are not there say null. */
  nulls: boolean;
  base64: 'base64' | 'base64url';
  padding: boolean;
}

export const anySpelling: fc.Arbitrary<Spelling> = fc.record({
  snakeCase: fc.boolean(),
  nulls: fc.boolean(),
  base64: fc.constantFrom('base64', 'base64url'),
  padding: fc.boolean(),
});

/** Bytes as text. */
export function base64Of(bytes: Buffer, { base64, padding }: Spelling): string {
  const digits = bytes.toString(base64).replace(/=+$/, '');
  return padding ? digits.padEnd(Math.ceil(digits.length / 4) * 4, '=') : digits;
}

type Json = Record<string, unknown>;

/** The members as a client spells them. Undefined ones are left out, or null. */
export function spelled(members: Json, { snakeCase, nulls }: Spelling): Json {
  const entries = Object.entries(members).flatMap(([key, member]) => {
    const spelledKey = snakeCase ? key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : key;
    if (member === undefined) return nulls ? [[spelledKey, null]] : [];
    return [[spelledKey, member]];
  });
  return Object.fromEntries(entries) as Json;
}

/** A fault that JSON can carry and the specification forbids. */
const FAULTS: readonly unknown[] = ['half \ud83d', '\ude00', Infinity, -Infinity];

/**
 * The value with a fault in place of one of its values, and the path of it as errors name it.
 * @param pick chooses the place and the fault
 */
export function withFault(json: Json, pick: number): { json: Json; field: string } {
  const places = placesIn(json, '');
  const { path, put } = places[pick % places.length]!;
  const copy = structuredClone(json);
  put(copy, FAULTS[pick % FAULTS.length]);
  return { json: copy, field: path };
}

interface Place {
  path: string;
  put: (root: Json, fault: unknown) => void;
}

function placesIn(value: unknown, path: string, keys: string[] = []): Place[] {
  if (typeof value !== 'object' || value === null) {
    const put: Place['put'] = (root, fault) => {
      let node = root;
      for (const key of keys.slice(0, -1)) node = node[key] as Json;
      node[keys.at(-1)!] = fault;
    };
    return [{ path, put }];
  }
  return Object.entries(value).flatMap(([key, member]) => {
    const below = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
    return placesIn(member, below, [...keys, key]);
  });
}
