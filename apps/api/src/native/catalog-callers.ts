import type { Scope } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import type { Author } from '@baton/tasks';
import type { FastifyRequest } from 'fastify';
import { requireScope } from '../a2a/scopes.js';
import { logContextOf } from '../http/log-context.js';

const READ: readonly Scope[] = ['agents:read', 'agents:write'];
const WRITE: readonly Scope[] = ['agents:write'];

/** The tenant whose agents are looked at. Throws `forbidden`. */
export function readerOf(request: FastifyRequest, agent?: string): string {
  const { tenantId, scopes } = callerOf(request);
  logContextOf(request).agent = agent;
  requireScope(READ, scopes);
  return tenantId;
}

/** Who changes them. Throws `forbidden`. */
export function authorOf(request: FastifyRequest, agent?: string): Author {
  const { tenantId, tokenId, scopes } = callerOf(request);
  logContextOf(request).agent = agent;
  requireScope(WRITE, scopes);
  return { tenantId, by: `token:${tokenId}` };
}
