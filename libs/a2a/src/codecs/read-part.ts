import type { Part } from '../model.js';
import { Fields } from './fields.js';

type Content = NonNullable<Part['content']>;

const FORMS = 'one of text, raw, url, data (or kind "text", "file", "data" with its member)';
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
/** Set by SDKs that carry a 1.0 data value which is no object through 0.3 (`{value: …}`). */
const WRAPPED_DATA = 'data_part_compat';

/**
 * Decode one part in any of the forms the families write: the 1.0 member form, and the older ones with
 * `kind` or `type`. Exactly one content is allowed.
 */
export function readPart(value: unknown, path: string): Part {
  const fields = Fields.of(value, path);
  const file = fields.child('file');
  const [content, ...others] = file ? [...readMembers(fields), ...readFile(file)] : readMembers(fields);
  if (!content) throw fields.refuse('content', `is missing: a part must have ${FORMS}`);
  if (others.length > 0) throw fields.refuse('content', `is ambiguous: a part must have exactly ${FORMS}`);
  const kind = fields.string('kind') ?? fields.string('type') ?? kindOf(content);
  if (kind !== kindOf(content)) throw fields.refuse('kind', `does not match: a part must have ${FORMS}`);
  const part = {
    content,
    metadata: fields.object('metadata'),
    filename: file?.string('name') ?? fields.string('filename') ?? '',
    mediaType: file?.string('mimeType') ?? fields.string('mediaType') ?? '',
  };
  return fields.has('kind') ? unwrapData(part) : part;
}

function readMembers(fields: Fields): Content[] {
  const text = fields.string('text');
  const data = fields.get('data');
  return [
    ...(text === undefined ? [] : [{ $case: 'text', value: text } as const]),
    ...(data === undefined ? [] : [{ $case: 'data', value: data } as const]),
    ...readRaw(fields, 'raw'),
    ...readUrl(fields, 'url'),
  ];
}

const readFile = (file: Fields): Content[] => [...readRaw(file, 'bytes'), ...readUrl(file, 'uri')];

function readUrl(fields: Fields, name: string): Content[] {
  const value = fields.string(name);
  if (value === '') throw fields.refuse(name, 'must be a non-empty string');
  return value === undefined ? [] : [{ $case: 'url', value }];
}

function readRaw(fields: Fields, name: string): Content[] {
  const text = fields.string(name);
  if (text === undefined) return [];
  if (!BASE64.test(text) || digitsOf(text) % 4 === 1) throw fields.refuse(name, 'must be base64');
  return [{ $case: 'raw', value: Buffer.from(text, 'base64') }];
}

/** Length of a base64 text without its padding, of which there are two characters at most. */
const digitsOf = (text: string): number =>
  text.length - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0);

const kindOf = ({ $case }: Content): string => ($case === 'text' || $case === 'data' ? $case : 'file');

function unwrapData(part: Part): Part {
  if (part.content?.$case !== 'data') return part;
  const { [WRAPPED_DATA]: wrapped, ...metadata } = part.metadata ?? {};
  const value: unknown = part.content.value;
  if (wrapped !== true || typeof value !== 'object' || value === null || !('value' in value)) return part;
  // A bare null has no place in the stored form; it stays wrapped.
  if (value.value === null) return part;
  return {
    ...part,
    content: { $case: 'data', value: value.value },
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
  };
}
