import { MAX_CONTEXT_ID_LENGTH, ProtocolError } from '@baton/a2a';
import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/;

/** What a parameter of the query may be, in words and as JSON Schema. */
interface QueryShape {
  description: string;
  schema: object;
  isRequired?: boolean;
}

/**
 * Reads a parameter of the query: `@Query('limit', LIMIT)`. The API document describes the parameter by the same pipe. Throws
 * `invalid-params`, also for a parameter that is there twice.
 */
export class QueryPipe<T> implements PipeTransform<unknown, T> {
  /** @param read gets undefined if the parameter is left out */
  constructor(
    readonly shape: QueryShape,
    private readonly read: (text: string | undefined, name: string) => T,
  ) {}

  transform(value: unknown, { data: name = '' }: ArgumentMetadata): T {
    if (value === undefined || typeof value === 'string') return this.read(value, name);
    throw ProtocolError.invalidParams(name, 'is there more than once: give it once');
  }
}

/** A text as it is. The route checks it. */
export const textQuery = (
  description: string,
  shape: Partial<QueryShape> = {},
): QueryPipe<string | undefined> =>
  new QueryPipe({ description, schema: { type: 'string' }, ...shape }, (text) => text);

/** A name or an id. Empty is the same as left out. */
export const nameQuery = (description: string): QueryPipe<string | undefined> =>
  new QueryPipe({ description, schema: { type: 'string', maxLength: MAX_NAME } }, (text, name) => {
    if (text === undefined || text === '') return undefined;
    // Postgres refuses U+0000 in a text.
    if (text.length <= MAX_NAME && !text.includes('\0')) return text;
    throw ProtocolError.invalidParams(name, `must be a text of at most ${MAX_NAME} characters`);
  });

/** Maximum characters of what names something. The longest is the id of a context; slugs and keys of principals are shorter. */
export const MAX_NAME = MAX_CONTEXT_ID_LENGTH;

/** `true` or `false`. Left out means false. */
export const flagQuery = (description: string): QueryPipe<boolean> =>
  new QueryPipe({ description, schema: { type: 'boolean', default: false } }, (text, name) => {
    if (text === undefined || text === 'false') return false;
    if (text === 'true') return true;
    throw ProtocolError.invalidParams(name, 'must be true or false');
  });

/** A whole number. Empty is the same as left out. */
export const wholeNumberQuery = (
  description: string,
  { minimum, maximum }: { minimum: number; maximum: number },
): QueryPipe<number | undefined> =>
  new QueryPipe({ description, schema: { type: 'integer', minimum, maximum } }, (text, name) => {
    if (text === undefined || text === '') return undefined;
    const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= minimum && number <= maximum) return number;
    throw ProtocolError.invalidParams(name, `must be a whole number from ${minimum} to ${maximum}`);
  });

/** A time with its zone. Empty is the same as left out. */
export const timeQuery = (description: string): QueryPipe<Date | undefined> =>
  new QueryPipe({ description, schema: { type: 'string', format: 'date-time' } }, (text, name) => {
    if (text === undefined || text === '') return undefined;
    const time = TIME.test(text) ? new Date(text) : undefined;
    if (time && !Number.isNaN(time.getTime())) return time;
    throw ProtocolError.invalidParams(
      name,
      'must be a time with its zone, such as 2026-12-31T08:00:00Z (write + as %2B)',
    );
  });
