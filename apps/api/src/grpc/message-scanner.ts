import { excessError, MAX_JSON_DEPTH, MAX_JSON_VALUES, ProtocolError, shortened } from '@baton/a2a';
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { isUtf8 } from 'node:buffer';

/** One level of JSON in a Struct is three messages: Struct, entry, Value. */
export const MAX_DEPTH = MAX_JSON_DEPTH * 3;

// The messages that JSON is made of. Their fields have no names in it.
const VALUE = 'google.protobuf.Value';
const STRUCT = 'google.protobuf.Struct';
const LIST = 'google.protobuf.ListValue';

/**
 * Counts the values of a message as those of its JSON are counted: each field is one, and each member of a Struct. Refuses
 * what protocol buffers can carry and JSON cannot: texts that are not UTF-8, and numbers that are not finite.
 */
export class MessageScanner {
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
