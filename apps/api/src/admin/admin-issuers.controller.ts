import { SCOPES } from '@baton/a2a';
import { newIssuer, type TrustedIssuer, TrustedIssuers } from '@baton/tasks';
import { Controller, Delete, Get, Param, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { BodyReader } from '../http/body-reader.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { timeSchema } from '../openapi/schemas.js';

const scopes = z.array(z.enum(SCOPES));
const issuerAnswer = z
  .object({
    id: z.string(),
    tenant: z.string().describe('Slug of the tenant'),
    tenant_id: z.string(),
    issuer: z.string(),
    audience: z.string(),
    selector: z
      .object({ claim: z.string(), value: z.string() })
      .nullable()
      .describe('Claim and value that select the tenant. Null: issuer and audience select it'),
    jwks_url: z.string().nullable().describe('Null: the URL in its discovery document'),
    subject_claim: z.string(),
    scopes,
    grants: z.array(z.object({ claim: z.string(), value: z.string(), scopes })),
    agents: z
      .array(z.string())
      .nullable()
      .describe('Slugs of the only agents that exist for its users. Null: all agents'),
    requests_per_second: z.int().nullable(),
    created_at: timeSchema,
  })
  .meta({ id: 'Issuer' });
const issuerList = z.object({ issuers: z.array(issuerAnswer) });

/** The OpenID providers that tenants trust. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin')
export class AdminIssuersController {
  constructor(
    private readonly issuers: TrustedIssuers,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({
    id: 'listAllIssuers',
    summary: 'Lists the issuers that tenants trust, by issuer and audience',
    answer: issuerList,
  })
  @OperatorRoles('read', 'support')
  @Get('issuers')
  async listAll(): Promise<z.infer<typeof issuerList>> {
    return { issuers: (await this.issuers.list()).map(encodeIssuer) };
  }

  @Describe({ id: 'listIssuers', summary: 'Lists the issuers that a tenant trusts', answer: issuerList })
  @OperatorRoles('read', 'support')
  @Get('tenants/:tenant/issuers')
  async list(@Param('tenant') slug: string): Promise<z.infer<typeof issuerList>> {
    return { issuers: (await this.issuers.list(slug)).map(encodeIssuer) };
  }

  @Describe({
    id: 'addIssuer',
    summary: 'Trusts an issuer. Its keys are read first, unless `check` is false',
    body: newIssuer,
    answer: issuerAnswer,
  })
  @Post('tenants/:tenant/issuers')
  async add(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof issuerAnswer>> {
    const body = await this.bodies.ofOperator(request);
    return encodeIssuer(await this.issuers.add(slug, body, operatorActorOf(request)));
  }

  @Describe({
    id: 'removeIssuer',
    summary: 'Removes an issuer, and returns the removed entry',
    answer: issuerAnswer,
  })
  @Delete('tenants/:tenant/issuers/:id')
  async remove(
    @Param('tenant') slug: string,
    @Param('id') id: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof issuerAnswer>> {
    return encodeIssuer(await this.issuers.remove(slug, id, operatorActorOf(request)));
  }
}

const encodeIssuer = (issuer: TrustedIssuer & { tenant: string }): z.infer<typeof issuerAnswer> => ({
  id: issuer.id,
  tenant: issuer.tenant,
  tenant_id: issuer.tenantId,
  issuer: issuer.issuer,
  audience: issuer.audience,
  selector: issuer.selector,
  jwks_url: issuer.jwksUrl,
  subject_claim: issuer.subjectClaim,
  scopes: issuer.scopes,
  grants: issuer.grants,
  agents: issuer.agents.length > 0 ? issuer.agents : null,
  requests_per_second: issuer.requestsPerSecond,
  created_at: issuer.createdAt.toISOString(),
});
