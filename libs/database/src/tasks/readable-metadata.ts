/** Larger metadata are not read. */
const MAX_BYTES = 64 * 1024;
/** Escapes that a `json` may hold and JSON operators of Postgres refuse: U+0000 and surrogates. */
const UNREADABLE = String.raw`'\\u(0000|d[89a-f])'`;

/**
 * SQL of a value in the metadata of a task. Null if they are too large, or no JSON operator can read them.
 * @param metadata SQL of the `json`
 * @param path JSON operators, such as `-> 'a' ->> 'b'`
 */
export const readableMetadata = (metadata: string, path: string): string =>
  `CASE WHEN pg_column_size(${metadata}) > ${MAX_BYTES} THEN NULL
    WHEN ${metadata}::text ~* ${UNREADABLE} THEN NULL ELSE ${metadata} ${path} END`;
