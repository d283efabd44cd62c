import { clock } from '@baton/telemetry';
import {
  ProtocolError,
  type Scope,
  SCOPES,
  SLUG,
  decodePageToken,
  encodePageToken,
  parseFields,
  stateName,
} from '@baton/a2a';
import {
  type ApiToken,
  type Caller,
  MAX_TOKEN_AGENTS,
  MAX_TOKEN_REQUESTS_PER_SECOND,
  type TokenRights,
  tokenState,
} from '@baton/identity';
import type { OpenWork, RevokedToken } from '@baton/tasks';
import { z } from 'zod';
import { flagQuery } from '../../openapi/query-pipe.js';
import { stateSchema, timeSchema } from '../../openapi/schemas.js';
import { nextCursor, cutPage } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';

const TIME = 'give a time with its offset, such as 2026-12-31T08:00:00Z, or null';
/** Prisma stores a time after it, but does not read it again. */
const YEAR_10000 = new Date('+010000-01-01T00:00:00Z');
/** Default time for which the former secret of a rotated token stays valid. */
const OVERLAP_SECONDS = 3_600;
/** Long enough for a change that is rolled out by hand. */
const MAX_OVERLAP_SECONDS = 30 * 86_400;

const members = {
  name: z
    .string()
    .trim()
    .min(1, { error: 'give it a name that says what it is for' })
    .max(100)
    .regex(/^\P{Cc}*$/u, { error: 'must have no control characters' }),
  scopes: z
    .array(z.enum(SCOPES, { error: `choose from ${SCOPES.join(', ')}` }))
    .min(1, { error: 'name at least one scope' })
    .max(SCOPES.length),
  agents: z
    .array(z.string().regex(SLUG, { error: 'must be the slug of an agent' }))
    .min(1, { error: 'name at least one agent, or give null for all' })
    .max(MAX_TOKEN_AGENTS)
    .nullable(),
  requests_per_second: z.int().min(1).max(MAX_TOKEN_REQUESTS_PER_SECOND).nullable(),
  expires_at: z.iso
    .datetime({ offset: true, error: TIME })
    .transform((text) => new Date(text))
    .refine((time) => time > clock.date(), { error: 'must be in the future' })
    .refine((time) => time < YEAR_10000, { error: 'must be before the year 10000' })
    .nullable(),
};
/** `agents:call` is the least with which a token is of use. */
export const newToken = z
  .strictObject({ ...members, scopes: members.scopes.default(['agents:call']) })
  .partial({
    agents: true,
    requests_per_second: true,
    expires_at: true,
  });
export const tokenPatch = z.strictObject(members).partial();
export const tokenRotation = z.strictObject({
  overlap_seconds: z.int().min(0).max(MAX_OVERLAP_SECONDS).default(OVERLAP_SECONDS),
  expires_at: members.expires_at.optional(),
});

/** `?stop=` of a revocation. */
export const STOP = flagQuery('Cancel its tasks and pause its schedules');

export const tokenAnswer = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string().describe('The first characters of its secret'),
    state: z.enum(['active', 'expired', 'revoked']),
    scopes: z.array(z.enum(SCOPES)),
    agents: z.array(z.string()).nullable().describe('Slugs of all agents that exist for it. Null: all'),
    requests_per_second: z.int().nullable(),
    expires_at: timeSchema.nullable(),
    last_used_at: timeSchema.nullable(),
    previous_prefix: z.string().nullable().describe('The same of the secret before the last rotation'),
    previous_until: timeSchema.nullable(),
    revoked_at: timeSchema.nullable(),
    created_at: timeSchema,
  })
  .meta({ id: 'Token' });
const openWork = z
  .object({
    tasks: z.array(z.object({ ...taskNames, agent_id: z.string(), state: stateSchema })),
    more_tasks: z.boolean(),
    schedules: z.array(z.object({ schedule_id: z.string(), name: z.string(), agent: z.string() })),
  })
  .meta({ id: 'OpenWork' });
export const tokenPage = z.object({ tokens: z.array(tokenAnswer), next_cursor: nextCursor });
export const issuedToken = tokenAnswer
  .extend({ secret: z.string().describe('Shown only here') })
  .meta({ id: 'IssuedToken' });
export const tokenWithWork = tokenAnswer.extend({ running: openWork }).meta({ id: 'TokenWithWork' });
export const revokedToken = tokenWithWork
  .extend({ canceled_tasks: z.int().optional(), paused_schedules: z.int().optional() })
  .meta({ id: 'RevokedToken' });

type GivenToken = Partial<z.output<typeof newToken>>;

/**
 * Reads a new token. Omitted members have the values of the caller's own token.
 * @param caller gives only what it has; unset = an operator
 * @throws ProtocolError `invalid-params`, `forbidden`
 */
export function decodeNewToken(body: unknown, caller?: Caller): TokenRights {
  const given = parseFields(newToken, body, '', 'the body');
  const rights = {
    agents: [...(caller?.agents?.slugs ?? [])],
    requestsPerSecond: caller?.requestsPerSecond ?? null,
    expiresAt: (caller && endOf(caller)) ?? null,
    name: given.name,
    scopes: given.scopes,
    ...rightsOf(given),
  };
  assertGives(caller, rights);
  return rights;
}

/** Reads a change of a token. @param caller unset = an operator @throws ProtocolError `invalid-params`, `forbidden` */
export function decodeTokenPatch(body: unknown, caller?: Caller): Partial<TokenRights> {
  const rights = rightsOf(parseFields(tokenPatch, body, '', 'the body'));
  assertGives(caller, rights);
  return rights;
}

/** Reads a rotation. @param caller unset = an operator @throws ProtocolError `invalid-params`, `forbidden` */
export function decodeRotation(
  body: unknown,
  token: TokenRights,
  caller?: Caller,
): { overlapMs: number; expiresAt?: Date | null } {
  const { overlap_seconds: seconds, expires_at: expiresAt } = parseFields(
    tokenRotation,
    body,
    '',
    'the body',
  );
  const end = expiresAt === undefined ? {} : { expiresAt };
  // The caller gets all rights of a token that it rotates.
  assertGives(caller, { ...token, ...end });
  return { overlapMs: seconds * 1000, ...end };
}

function rightsOf(given: GivenToken): Partial<TokenRights> {
  const { name, scopes, agents, requests_per_second: requestsPerSecond, expires_at: expiresAt } = given;
  return {
    ...(name !== undefined && { name }),
    ...(scopes && { scopes: [...new Set(scopes)] }),
    ...(agents !== undefined && { agents: [...new Set(agents)] }),
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
    ...(expiresAt !== undefined && { expiresAt }),
  };
}

/** Throws `forbidden` for a right that the caller does not have itself. Operators have all. */
function assertGives(caller: Caller | undefined, rights: Partial<TokenRights>): void {
  if (!caller) return;
  const { scopes = [], agents, requestsPerSecond, expiresAt } = rights;
  const lacking = scopes.find((scope) => !has(caller, scope));
  if (lacking) throw exceeds('scopes', `yours lacks ${lacking}`);
  if (agents && !reaches(caller, agents)) {
    throw exceeds('agents', `choose from yours: ${caller.agents?.slugs.join(', ') ?? ''}`);
  }
  const max = caller.requestsPerSecond;
  if (max !== undefined && requestsPerSecond !== undefined && (requestsPerSecond ?? Infinity) > max) {
    throw exceeds('requests_per_second', `yours has ${String(max)}`);
  }
  const end = endOf(caller);
  if (end && expiresAt !== undefined && (expiresAt ?? NEVER) > end) {
    throw exceeds('expires_at', `yours expires at ${end.toISOString()}`);
  }
}

const NEVER = new Date(8.64e15);

const exceeds = (field: string, why: string): ProtocolError =>
  new ProtocolError('forbidden', `${field}: a token cannot give what it lacks: ${why}`);

const has = ({ scopes }: Caller, scope: Scope): boolean => scopes.includes('admin') || scopes.includes(scope);

/** When tokens that the caller creates must end. Those that a user creates may outlive the session of the user. */
const endOf = ({ principal, expiresAt }: Caller): Date | undefined =>
  principal.kind === 'token' ? expiresAt : undefined;

/** Whether all agents of a token exist for the caller. Others do not, and nor do their tokens. @param agents empty = all */
export const reaches = ({ agents }: Caller, of: readonly string[]): boolean =>
  !agents || (of.length > 0 && of.every((slug) => agents.slugs.includes(slug)));

export const encodeToken = (token: ApiToken): z.infer<typeof tokenAnswer> => ({
  id: token.id,
  name: token.name,
  prefix: token.prefix,
  state: tokenState(token),
  scopes: token.scopes,
  agents: token.agents.length > 0 ? token.agents : null,
  requests_per_second: token.requestsPerSecond,
  expires_at: token.expiresAt?.toISOString() ?? null,
  last_used_at: token.lastUsedAt?.toISOString() ?? null,
  previous_prefix: token.previousPrefix,
  previous_until: token.previousUntil?.toISOString() ?? null,
  revoked_at: token.revokedAt?.toISOString() ?? null,
  created_at: token.createdAt.toISOString(),
});

/** Reads after which token a page begins. Throws `invalid-params`. */
export function readTokenCursor(cursor: string | undefined): { createdAt: Date; id: string } | undefined {
  const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
  return position && { createdAt: position.statusAt, id: position.taskId };
}

/** A page. @param found one more than `limit`, if there is another page @param isShown unset = all are */
export function encodeTokenPage(
  found: readonly ApiToken[],
  limit: number,
  isShown: (token: ApiToken) => boolean = () => true,
): z.infer<typeof tokenPage> {
  const { page, last } = cutPage(found, limit);
  return {
    tokens: page.filter(isShown).map(encodeToken),
    next_cursor: last ? encodePageToken({ statusAt: last.createdAt, taskId: last.id }) : null,
  };
}

export const encodeRevoked = ({ token, running, stopped }: RevokedToken): z.infer<typeof revokedToken> => ({
  ...encodeToken(token),
  running: encodeOpenWork(running),
  ...(stopped && {
    canceled_tasks: stopped.canceledTasks,
    paused_schedules: stopped.pausedSchedules,
  }),
});

/** The running tasks and schedules of the token. */
export const encodeOpenWork = ({ tasks, hasMore, schedules }: OpenWork): z.infer<typeof openWork> => ({
  tasks: tasks.map(({ id, agentId, state }) => ({
    ...namesOfTask(id),
    agent_id: agentId,
    state: stateName(state),
  })),
  more_tasks: hasMore,
  schedules: schedules.map(({ id, name, agent }) => ({ schedule_id: id, name, agent })),
});
