import type { Conditions } from './conditions.js';
import { LAST_ERROR } from './last-error.js';
import { TENANT } from './listed-tasks.js';
import type { SearchPlace } from './task-records.js';

/** A search reads this much of a message or a status, in bytes of its JSON. A larger one is not found by its text. */
const MESSAGE_BYTES = 64 * 1024;
/** A search reads this much of an answer, in bytes of its JSON. A task has many pieces of answers and few messages. */
const ANSWER_BYTES = 32 * 1024;
/** Characters of the text around a hit, and before it. */
const [AROUND, BEFORE] = [200, 60];

/** A task that a search has found. */
export interface FoundTask {
  id: string;
  place: SearchPlace;
}

/** SQL of the text of an array of parts. Streams write a word in each, so nothing stands between them. */
const textOfParts = (parts: string): string => `(
  SELECT string_agg(coalesce(part->>'text', part->>'data'), '' ORDER BY number)
  FROM json_array_elements(CASE json_typeof(${parts}) WHEN 'array' THEN ${parts} END) WITH ORDINALITY AS p(part, number))`;

/** SQL of the text of the artifacts of a task `t`, one a line. */
const ANSWER = `(SELECT string_agg(${textOfParts("artifact->'parts'")}, E'\\n' ORDER BY nth)
  FROM json_array_elements(t.artifacts) WITH ORDINALITY AS a(artifact, nth))`;
const STATUS = textOfParts("t.status->'message'->'parts'");

/** SQL of whether a column of JSON has escapes such as `\u0000`. Postgres has no text for some of them. */
const isEscaped = (json: string): string => `strpos(${json}::text, '\\u') > 0`;

/** What stands between two texts of a stream in JSON. */
const BETWEEN_TEXTS = '"},{"text":"';

/**
 * SQL of where a task `t` has a text; null: nowhere. Upper and lower case are the same. No index serves it, so that a send and the end
 * of a task cost nothing more: it reads a message and a task for each. Postgres reads JSON only if the text is in it: that is slow.
 * JSON with escapes is compared as it stands.
 */
export function searchHit(where: Conditions, text: string): string {
  const wanted = `lower(${where.value(text)}::text)`;
  const escaped = `lower(${where.value(JSON.stringify(text).slice(1, -1))}::text)`;
  const start = where.value(`${likeEscaped(text)}%`);
  const has = (found: string, what: string): string => `strpos(lower(${found}), ${what}) > 0`;
  // The concatenation makes a copy, so that Postgres decompresses a value once.
  const isIn = (column: string, found: string, bytes: number): string => `(SELECT CASE
      WHEN octet_length(json) > ${bytes} THEN false
      WHEN ${isEscaped('json')} THEN ${has('json', escaped)}
      WHEN ${has(`replace(json, '${BETWEEN_TEXTS}', '')`, escaped)} OR ${has('json', wanted)} THEN ${has(found, wanted)} END
    FROM (SELECT CASE WHEN pg_column_size(${column}) <= ${bytes} THEN ${column}::text || '' END AS json OFFSET 0) content)`;
  const isInMessage = `(SELECT ${isIn('m.message', textOfParts("m.message->'parts'"), MESSAGE_BYTES)}
      FROM task_messages m WHERE m.tenant_id = ${TENANT} AND m.task_id = t.id AND m.sequence = 1)`;
  return `CASE WHEN t.id::text ILIKE ${start} THEN 'task_id'
    WHEN ${has('t.context_id', wanted)} THEN 'context_id'
    WHEN ${isInMessage} THEN 'first_message'
    WHEN ${isIn('t.status', STATUS, ANSWER_BYTES)} THEN 'status_message'
    WHEN ${has(LAST_ERROR, wanted)} THEN 'error_message'
    WHEN ${isIn('t.artifacts', ANSWER, ANSWER_BYTES)} THEN 'answer' END`;
}

/**
 * SQL of the text around a hit of `searchHit` in a status, an error or an answer of a task `t`. Null: it is elsewhere, or Postgres has no
 * text for it.
 */
export function hitText(place: string, searched: string): string {
  const text = `CASE ${place}
    WHEN 'status_message' THEN CASE WHEN NOT ${isEscaped('t.status')} THEN ${STATUS} END
    WHEN 'error_message' THEN ${LAST_ERROR}
    WHEN 'answer' THEN CASE WHEN NOT ${isEscaped('t.artifacts')} THEN ${ANSWER} END END`;
  return `(SELECT CASE WHEN hit.at > ${BEFORE + 1} THEN '…' ELSE '' END
      || substr(hit.text, greatest(1, hit.at - ${BEFORE}), ${AROUND})
      || CASE WHEN length(hit.text) >= greatest(1, hit.at - ${BEFORE}) + ${AROUND} THEN '…' ELSE '' END
    FROM (SELECT found.text, strpos(lower(found.text), lower(${searched})) AS at FROM (SELECT ${text} AS text OFFSET 0) found) hit)`;
}

/** `%`, `_` and `\` as they are. */
const likeEscaped = (text: string): string => text.replaceAll(/[\\%_]/g, String.raw`\$&`);
