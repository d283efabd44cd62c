import { ProtocolError } from '@baton/a2a';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { vary } from '../../http/requests.js';
import { QueryPipe } from '../../openapi/query-pipe.js';

/** `?format=` of an answer that is a table. */
export const FORMAT = new QueryPipe<'json' | 'csv' | undefined>(
  {
    description: 'Form of the answer. Left out: `csv` if Accept asks for text/csv, else `json`',
    schema: { type: 'string', enum: ['json', 'csv'] },
  },
  (text, name) => {
    if (text === undefined || text === '') return undefined;
    if (text === 'json' || text === 'csv') return text;
    throw ProtocolError.invalidParams(name, 'must be json or csv');
  },
);

/** A spreadsheet takes a text that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r\n]/;

/** A table as CSV (RFC 4180). Texts that a spreadsheet would take for formulas get an apostrophe before them. */
export const csvOf = (rows: readonly (readonly (string | number | null)[])[]): string =>
  rows.map((row) => `${row.map(cellOf).join(',')}\r\n`).join('');

function cellOf(value: string | number | null): string {
  if (typeof value !== 'string') return value === null ? '' : String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Whether an answer goes out as CSV: By `format`, else by the header Accept. */
export function wantsCsv(
  request: FastifyRequest,
  reply: FastifyReply,
  format: 'json' | 'csv' | undefined,
): boolean {
  vary(reply, 'Accept');
  return (format ?? (/\btext\/csv\b/i.test(request.headers.accept ?? '') ? 'csv' : 'json')) === 'csv';
}

/** @param name of the file, without its ending */
export async function sendCsv(
  reply: FastifyReply,
  name: string,
  rows: readonly (readonly (string | number | null)[])[],
): Promise<void> {
  const headers = {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${name}.csv"`,
  };
  await reply.headers(headers).send(csvOf(rows));
}
