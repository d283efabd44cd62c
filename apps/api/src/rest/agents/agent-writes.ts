import { ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import type { Author, CatalogEntry, WriteOptions } from '@baton/tasks';
import type { FastifyRequest } from 'fastify';
import { readFlag } from '../query.js';

/** Who changes an agent, as its versions name the author. */
export function authorOf(request: FastifyRequest): Author {
  const { tenantId, tokenId } = callerOf(request);
  return { tenantId, by: `token:${tokenId}` };
}

/** Names one version of one agent: of another, or after a change, it is another. */
export const etagOf = ({ id, version }: Pick<CatalogEntry, 'id' | 'version'>): string => `"${id}.${version}"`;

/**
 * How a request wants something written: `?dryRun=true`, and `If-Match` or `If-None-Match` (RFC 9110 §13.1), by
 * which two people do not overwrite each other's work.
 */
export function writeOptions(
  { headers }: FastifyRequest,
  dryRun: string | undefined,
): Required<WriteOptions> {
  const match = headers['if-match'];
  const noneMatch = headers['if-none-match'];
  return {
    dryRun: readFlag('dryRun', dryRun),
    check: (current) => {
      if (match !== undefined) assertMatch(match, current);
      if (noneMatch !== undefined && current && isNamedIn(noneMatch, current)) {
        throw new ProtocolError('precondition-failed', `there is an agent "${current.slug}" already`);
      }
    },
  };
}

function assertMatch(match: string, current: CatalogEntry | undefined): void {
  if (current && isNamedIn(match, current)) return;
  const what = current
    ? `"${current.slug}" is at version ${current.version} by now`
    : 'there is no such agent';
  throw new ProtocolError('precondition-failed', `If-Match: ${what}: read it again and change that`);
}

const isNamedIn = (tags: string, current: CatalogEntry): boolean =>
  tags.trim() === '*' || tags.split(',').some((tag) => tag.trim() === etagOf(current));
