import { isOfCaller, isUuid, parseFields, ProtocolError } from '@baton/a2a';
import { oauthServers, type OAuthServer } from '@baton/agents';
import { Environment } from '@baton/config';
import { callerOf, type ListedConnection, OAuthConnections, OAuthSignIns, signInUrl } from '@baton/identity';
import { Catalog } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { PublicUrl } from '../../http/public-url.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';
import { CURSOR, LIMIT, nextCursor, oneMore, pageOf, readPage } from '../paging.js';
import { assertMasterKey } from '../secrets/assert-master-key.js';

export const newConnection = z.strictObject({
  agent: z.string().min(1).describe('Slug or id of the agent whose settings name the server'),
  server: z
    .string()
    .min(1)
    .optional()
    .describe('Name of the server in these settings. Left out: the only one'),
});
const connectionLink = z
  .object({
    url: z.string().describe('Open it in the browser of the person who signs in'),
    expires_at: timeSchema,
  })
  .meta({ id: 'ConnectionLink' });
export const connectionAnswer = z
  .object({
    id: z.string(),
    resource: z.string().describe('URL of the server in the settings of agents'),
    caller: z
      .string()
      .nullable()
      .describe('Key of the principal that is signed in. Null: the whole tenant is'),
    issuer: z.string().describe('The authorization server'),
    scope: z.string().nullable().describe('What it has granted. Null: it did not say'),
    state: z.enum(['signed-in', 'ended']).describe('`ended`: the tokens are no longer valid. Sign in again'),
    reason: z.string().nullable().describe('Why it is over. Null: it is not'),
    expires_at: timeSchema
      .nullable()
      .describe('When the access token expires. Null: it does not say, or the sign-in has ended'),
    refreshable: z
      .boolean()
      .nullable()
      .describe(
        'Whether Baton refreshes the access token. If not, the sign-in is over when the server refuses the token. Null: this process ' +
          'has not the master key of the tokens',
      ),
    created_by: z.string().describe('Key of the principal that has begun the sign-in'),
    created_at: timeSchema,
    updated_at: timeSchema,
  })
  .meta({ id: 'Connection' });
const connectionList = z.object({ connections: z.array(connectionAnswer), next_cursor: nextCursor });

/** The sign-ins of a tenant at servers that its agents call. Tokens are never shown. */
@RequireScope('secrets:write')
@Controller('v1/connections')
export class ConnectionsController {
  constructor(
    private readonly connections: OAuthConnections,
    private readonly signIns: OAuthSignIns,
    private readonly catalog: Catalog,
    private readonly bodies: BodyReader,
    private readonly publicUrl: PublicUrl,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'listConnections',
    summary: 'Lists the sign-ins at servers that agents call',
    answer: connectionList,
  })
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof connectionList>> {
    const { tenantId } = callerOf(request);
    const asked = readPage(limit, cursor);
    if (asked.after !== undefined && !isUuid(asked.after)) {
      throw ProtocolError.invalidParams(
        'cursor',
        'must be the next_cursor of an earlier page, or be left out',
      );
    }
    const found = await this.connections.list(tenantId, oneMore(asked));
    const { page, nextCursor } = pageOf(found, ({ id }) => id, asked);
    return { connections: page.map(encodeConnection), next_cursor: nextCursor };
  }

  @Describe({
    id: 'beginConnection',
    summary:
      'Begins a sign-in of the whole tenant at a server that an agent calls. The answer has a link for a browser',
    body: newConnection,
    answer: connectionLink,
  })
  @Post()
  async begin(@Req() request: FastifyRequest): Promise<z.infer<typeof connectionLink>> {
    const caller = callerOf(request);
    assertMasterKey(this.environment);
    const { agent: name, server } = parseFields(
      newConnection,
      await this.bodies.json(request),
      '',
      'the body',
    );
    const agent = await this.catalog.get(caller, name);
    const { url, settings } = serverOf(oauthServers(agent.definition), server);
    if (isOfCaller(settings)) {
      const message = 'signs in each caller: tasks that need it have a link (auth-required)';
      throw ProtocolError.invalidParams('server', message);
    }
    const { tenantId, principal } = caller;
    const wanted = { tenantId, caller: null, url, settings, agent: agent.slug, createdBy: principal.key };
    const { ticket, expiresAt } = await this.signIns.begin(wanted, actorOf(request));
    return {
      url: signInUrl(this.publicUrl.value, ticket),
      expires_at: expiresAt.toISOString(),
    };
  }

  @Describe({
    id: 'deleteConnection',
    summary: 'Signs out at a server: revokes the tokens at its authorization server, and deletes them',
  })
  @Delete(':id')
  @HttpCode(204)
  async remove(@Param('id') id: string, @Req() request: FastifyRequest): Promise<void> {
    const { tenantId } = callerOf(request);
    if (isUuid(id) && (await this.connections.signOut(tenantId, id, actorOf(request)))) return;
    throw new ProtocolError('not-found', `Connection not found: ${id}`);
  }
}

/** Throws `invalid-params` unless the settings have that server, or only one. */
function serverOf(servers: readonly OAuthServer[], name: string | undefined): OAuthServer {
  const names = servers.map(({ server }) => server).join(', ');
  if (servers.length === 0)
    throw ProtocolError.invalidParams('agent', 'has no server with oauth in its settings');
  const found =
    name === undefined && servers.length === 1 ? servers[0] : servers.find(({ server }) => server === name);
  if (found) return found;
  throw ProtocolError.invalidParams(
    'server',
    `must be one of the servers with oauth of this agent: ${names}`,
  );
}

const encodeConnection = (connection: ListedConnection): z.infer<typeof connectionAnswer> => ({
  id: connection.id,
  resource: connection.resource,
  caller: connection.caller,
  issuer: connection.issuer,
  scope: connection.scope,
  state: connection.ended === null ? 'signed-in' : 'ended',
  reason: connection.ended,
  expires_at: connection.expiresAt?.toISOString() ?? null,
  refreshable: connection.isRefreshable,
  created_by: connection.createdBy,
  created_at: connection.createdAt.toISOString(),
  updated_at: connection.updatedAt.toISOString(),
});
