import {
  assertJsonLimits,
  excessError,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
  ProtocolError,
  shortened,
  wellFormed,
} from '@baton/a2a';
import {
  createFileRegistry,
  type DescField,
  type DescMessage,
  type DescService,
  fromBinary,
  fromJson,
  type JsonValue,
  ScalarType,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { isUtf8 } from 'node:buffer';
import { DESCRIPTOR_SET } from './descriptors.js';

const FILES = fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64'));
const REGISTRY = createFileRegistry(FILES);

/** One level of JSON in a Struct is three messages: Struct, entry, Value. */
const MAX_DEPTH = MAX_JSON_DEPTH * 3;

/** Every file, each before those that import it. */
export const protoFiles = (): readonly FileDescriptorProto[] => FILES.file;

/** The type of the service of that full name. Throws an Error if there is none, which is a bug. */
export function serviceOf(name: string): DescService {
  const service = REGISTRY.getService(name);
  if (!service) throw new Error(`no service ${name} in descriptors.ts`);
  return service;
}

/** The type of the message of that full name. Throws an Error if there is none, which is a bug. */
export function messageTypeOf(name: string): DescMessage {
  const message = REGISTRY.getMessage(name);
  if (!message) throw new Error(`no message ${name} in descriptors.ts`);
  return message;
}

/**
 * The ProtoJSON of a message of a caller. Values and depth are counted before anything is made of the bytes: two bytes
 * can stand for an object. Throws `parse` for bytes that are not such a message, and `invalid-request` for too
 * many values. Throws `invalid-params` with the field for a text that is not UTF-8, or a number that is not finite.
 */
export function decodeMessage(message: DescMessage, bytes: Uint8Array): Record<string, unknown> {
  try {
    new MessageScanner(bytes).scan(bytes.length, message, 1);
    const decoded = fromBinary(message, bytes, { readUnknownFields: false, recursionLimit: MAX_DEPTH + 10 });
    const json = toJson(message, decoded, { registry: REGISTRY });
    assertJsonLimits(json);
    return json as Record<string, unknown>;
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const reason = error instanceof Error ? error.message.slice(0, 200) : '';
    throw new ProtocolError('parse', `the message is not a valid ${message.typeName}: ${reason}`);
  }
}

/**
 * The bytes of a message that we write, from its ProtoJSON. What the version has no field for is left out. A lone surrogate
 * becomes U+FFFD.
 */
export function encodeMessage(message: DescMessage, json: unknown): Buffer {
  // Answers are made to be JSON; members that are undefined are none.
  const decoded = fromJson(message, defined(wellFormed(json ?? {})) as JsonValue, {
    registry: REGISTRY,
    ignoreUnknownFields: true,
    recursionLimit: MAX_DEPTH + 10,
  });
  const bytes = toBinary(message, decoded);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Without the members that are undefined, as JSON.stringify leaves them out. */
function defined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(defined);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, defined(member)]));
}

/** The messages that JSON is made of. Their fields have no names in it. */
const [VALUE, STRUCT, LIST] = [
  'google.protobuf.Value',
  'google.protobuf.Struct',
  'google.protobuf.ListValue',
];

/**
 * Counts the values of a message as those of its JSON are counted: each field is one, and each member of a Struct. Refuses
 * what protocol buffers can carry and JSON cannot: texts that are not UTF-8, and numbers that are not finite.
 */
class MessageScanner {
  private readonly reader: BinaryReader;
  private readonly path: string[] = [];
  private values = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.reader = new BinaryReader(bytes);
  }

  scan(end: number, message: DescMessage, depth: number): void {
    if (depth > MAX_DEPTH) throw excessError('depth');
    const { reader } = this;
    const lengths = new Map<number, number>();
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      this.count(message);
      const field = message.fields.find((each) => each.number === number);
      const index = lengths.get(number) ?? 0;
      if (field?.fieldKind === 'list') lengths.set(number, index + 1);
      if (field) this.path.push(segmentOf(field, index));
      if (wireType === WireType.LengthDelimited && field) this.scanField(end, field, depth);
      else if (wireType === WireType.Bit64 && message.typeName === VALUE) this.scanNumber();
      else reader.skip(wireType, number);
      if (field) this.path.pop();
    }
  }

  private scanField(end: number, field: DescField, depth: number): void {
    const { reader } = this;
    const below = Math.min(reader.uint32() + reader.pos, end);
    if (field.fieldKind === 'map') this.scanEntry(below, field, depth + 1);
    else if (field.message) this.scan(below, field.message, depth + 1);
    else this.scanScalar(below, field);
  }

  /** The entry of a map: a key, and a value that may be a message. */
  private scanEntry(end: number, { message }: { message?: DescMessage | undefined }, depth: number): void {
    const { reader } = this;
    this.path.push('');
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      if (number === 1 && wireType === WireType.LengthDelimited) {
        const key = Buffer.from(this.text(reader.uint32() + reader.pos)).toString();
        // Code that copies it into an object would change the prototype of the object.
        if (key === '__proto__') throw ProtocolError.invalidParams('__proto__', 'is not allowed');
        this.path[this.path.length - 1] = key;
      } else if (number === 2 && wireType === WireType.LengthDelimited && message) {
        const below = reader.uint32() + reader.pos;
        this.scan(Math.min(below, end), message, depth + 1);
      } else reader.skip(wireType, number);
    }
    this.path.pop();
  }

  private scanScalar(end: number, { scalar }: { scalar?: ScalarType | undefined }): void {
    if (scalar === ScalarType.STRING) this.text(end);
    else this.reader.pos = end;
  }

  /** The text up to there, in UTF-8. */
  private text(end: number): Uint8Array {
    const bytes = this.bytes.subarray(this.reader.pos, end);
    if (!isUtf8(bytes)) throw this.refuse('must be well-formed Unicode: it is not UTF-8');
    this.reader.pos = end;
    return bytes;
  }

  private scanNumber(): void {
    if (Number.isFinite(this.reader.double())) return;
    throw this.refuse('must be a finite number: JSON has no other; send it as a text');
  }

  private refuse(description: string): ProtocolError {
    const path = this.path.filter((segment) => segment !== '').join('.');
    return ProtocolError.invalidParams(shortened(path.replaceAll('.[', '['), MAX_PATH), description);
  }

  /** A Value is counted where it stands: as the member of a Struct or the item of a list. */
  private count({ typeName }: DescMessage): void {
    if (typeName === VALUE) return;
    this.values += 1;
    if (this.values > MAX_JSON_VALUES) throw excessError('values');
  }
}

/** Longest path that an error names, in characters. */
const MAX_PATH = 200;

/** What a field adds to the path of a value. */
function segmentOf({ parent, jsonName, fieldKind }: DescField, index: number): string {
  if (parent.typeName === VALUE || parent.typeName === STRUCT) return '';
  if (parent.typeName === LIST) return `[${String(index)}]`;
  return fieldKind === 'list' ? `${jsonName}[${String(index)}]` : jsonName;
}
