import { assertJsonLimits, ProtocolError, wellFormed } from '@baton/a2a';
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
import { DESCRIPTOR_SET } from './descriptors.js';
import { MessageScanner, MAX_DEPTH } from './message-scanner.js';

const FILES = fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64'));
const REGISTRY = createFileRegistry(FILES);

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
