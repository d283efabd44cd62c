import { assertJsonLimits, excessError, MAX_JSON_DEPTH, MAX_JSON_VALUES, ProtocolError } from '@baton/a2a';
import {
  createFileRegistry,
  type DescMessage,
  type DescService,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { DESCRIPTOR_SET } from './descriptors.js';

const FILES = fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64'));
const REGISTRY = createFileRegistry(FILES);

/** One level of JSON in a Struct is three messages: Struct, entry, Value. */
const MAX_DEPTH = MAX_JSON_DEPTH * 3;

/** Every file, each before those that import it. */
export const protoFiles = (): readonly FileDescriptorProto[] => FILES.file;

/** The service of that full name. Throws if there is none, which is a bug. */
export function serviceOf(name: string): DescService {
  const service = REGISTRY.getService(name);
  if (!service) throw new Error(`no service ${name} in descriptors.ts`);
  return service;
}

/** The message of that full name. Throws if there is none, which is a bug. */
export function messageOf(name: string): DescMessage {
  const message = REGISTRY.getMessage(name);
  if (!message) throw new Error(`no message ${name} in descriptors.ts`);
  return message;
}

/**
 * The ProtoJSON of a message of a caller. Values and depth are counted before anything is made of the bytes: two bytes
 * can stand for an object. Throws `parse` for bytes that are no such message, and `invalid-request` for one with too
 * many values.
 */
export function decodeMessage(message: DescMessage, bytes: Uint8Array): Record<string, unknown> {
  try {
    new MessageScanner().scan(new BinaryReader(bytes), bytes.length, message, 1);
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

/** The bytes of a message that we write, from its ProtoJSON. What the version has no field for is left out. */
export function encodeMessage(message: DescMessage, json: unknown): Buffer {
  // Answers are made to be JSON; members that are undefined are none.
  const decoded = fromJson(message, defined(json ?? {}) as JsonValue, {
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

/** A Value is counted where it stands: as the member of a Struct or the item of a list. */
const VALUE = 'google.protobuf.Value';

/** Counts the values of a message as those of its JSON are counted: each field is one, and each member of a Struct. */
class MessageScanner {
  private values = 0;

  scan(reader: BinaryReader, end: number, message: DescMessage, depth: number): void {
    if (depth > MAX_DEPTH) throw excessError('depth');
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      this.count(message);
      const field = message.fields.find((each) => each.number === number);
      if (wireType !== WireType.LengthDelimited || !field) {
        reader.skip(wireType, number);
        continue;
      }
      const below = reader.uint32() + reader.pos;
      if (field.fieldKind === 'map') this.scanEntry(reader, Math.min(below, end), field, depth + 1);
      else if (field.message) this.scan(reader, Math.min(below, end), field.message, depth + 1);
      else reader.pos = below;
    }
  }

  /** The entry of a map: a key, and a value that may be a message. */
  private scanEntry(
    reader: BinaryReader,
    end: number,
    { message }: { message?: DescMessage | undefined },
    depth: number,
  ): void {
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      if (number === 1 && wireType === WireType.LengthDelimited) {
        // Whoever copies it into an object would change what the object is.
        if (reader.string() === '__proto__') throw ProtocolError.invalidParams('__proto__', 'is not allowed');
      } else if (number === 2 && wireType === WireType.LengthDelimited && message) {
        const below = reader.uint32() + reader.pos;
        this.scan(reader, Math.min(below, end), message, depth + 1);
      } else reader.skip(wireType, number);
    }
  }

  private count({ typeName }: DescMessage): void {
    if (typeName === VALUE) return;
    this.values += 1;
    if (this.values > MAX_JSON_VALUES) throw excessError('values');
  }
}
