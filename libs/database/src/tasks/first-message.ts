import { shortened } from '@baton/a2a';

/** Characters of a first message that lists show. */
const MAX_CHARACTERS = 200;
/** A larger message is not read for a list, in bytes of its JSON and as Postgres stores it. */
const MAX_BYTES = 64 * 1024;

/** Characters before a text that was searched for. */
const BEFORE = 60;

/**
 * SQL of how the first message of a task `t` begins, as a message: `{"parts": [{"text": …}]}`. JSON with escapes such as `\u0000`
 * comes as it stands, because Postgres has no text for some of them. NULL = it is too large.
 * @param searched SQL of a text that was searched for: the parts that have it come first, each with the text around it
 */
export function firstMessage(searched?: string): string {
  const text = "coalesce(part->>'text', part->>'data', part->>'filename', '')";
  const begin = `left(${text}, ${MAX_CHARACTERS + 1})`;
  const position = `strpos(lower(${text}), lower(${searched ?? ''}))`;
  const isSearch = searched !== undefined;
  const shown = !isSearch
    ? begin
    : `CASE WHEN ${position} > ${BEFORE} THEN '…' || substr(${text}, ${position} - ${BEFORE} + 1, ${MAX_CHARACTERS}) ELSE ${begin} END`;
  return `(SELECT CASE
    WHEN pg_column_size(m.message) > ${MAX_BYTES} THEN NULL
    WHEN octet_length(m.message::text) > ${MAX_BYTES} THEN NULL
    WHEN strpos(m.message::text, '\\u') > 0 THEN m.message
    WHEN json_typeof(m.message->'parts') = 'array' THEN (
      SELECT json_build_object('parts', json_agg(json_build_object('text', ${shown}) ORDER BY ${isSearch ? `${position} = 0, ` : ''}number))
      FROM json_array_elements(m.message->'parts') WITH ORDINALITY parts (part, number) WHERE number <= 5) END
  FROM task_messages m WHERE m.tenant_id = t.tenant_id AND m.task_id = t.id AND m.sequence = 1)`;
}

/** A first message, or its beginning. */
export interface MessageStart {
  parts?: { text?: string; data?: unknown; filename?: string }[];
}

/** How a first message begins, on one line: the text of its parts, data as JSON, files by their names. Undefined: it has no text. */
export function firstMessageOf(message: MessageStart | null | undefined): string | undefined {
  const parts = message?.parts ?? [];
  const texts = parts.map(({ text, data, filename = '' }) => text ?? jsonOf(data) ?? filename);
  const line = texts.join(' ').replaceAll(/\s+/g, ' ').trim();
  return line === '' ? undefined : shortened(line, MAX_CHARACTERS);
}

/** Undefined has no JSON. */
const jsonOf = (data: unknown): string | undefined => JSON.stringify(data);
