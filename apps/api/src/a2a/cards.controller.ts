import { type Agent, type CardForm, ProtocolError, buildAgentCard, parseVersion } from '@baton/a2a';
import { BearerGuard, callerOf } from '@baton/identity';
import { AgentDirectory } from '@baton/tasks';
import { Controller, Get, Param, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PublicUrl } from '../http/public-url.js';
import { agentNotFound } from './agent-finder.js';
import { requestedVersion } from './call-headers.js';
import { CardSheets } from './card-sheets.js';
import { OptionalBearerGuard } from './optional-bearer.guard.js';
import { SERVER_AGENT } from './server-agent.js';

/** How long a card may be used without asking again, in seconds. */
const MAX_AGE = 60;

/** Every path below has a card for GET; other methods on them are refused. */
export const CARD_PATHS = [
  '/.well-known/agent-card.json',
  '/.well-known/agent.json',
  '/agents/:agent/.well-known/agent-card.json',
  '/agents/:agent/.well-known/agent.json',
] as const;

/** Agent cards (A2A 1.0 §8): of one agent, for callers of its tenant, and of the server, for everybody. */
@Controller()
export class CardsController {
  constructor(
    private readonly agents: AgentDirectory,
    private readonly sheets: CardSheets,
    private readonly publicUrl: PublicUrl,
  ) {}

  @Get('agents/:agent/.well-known/agent-card.json')
  @UseGuards(BearerGuard)
  async agentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send(await this.find(slugOrId, request), formFor(request), request, reply);
  }

  /** Where clients of 0.2 look. */
  @Get('agents/:agent/.well-known/agent.json')
  @UseGuards(BearerGuard)
  async flatAgentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send(await this.find(slugOrId, request), '0.2', request, reply);
  }

  @Get('.well-known/agent-card.json')
  @UseGuards(OptionalBearerGuard)
  async rootCard(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.send(await this.rootAgent(request), formFor(request), request, reply);
  }

  @Get('.well-known/agent.json')
  @UseGuards(OptionalBearerGuard)
  async flatRootCard(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.send(await this.rootAgent(request), '0.2', request, reply);
  }

  /** What a client asks for that resolves the card against `/agents/echo`: the agent's name gets lost. */
  @Get('agents/.well-known/:card')
  lostAgent(): never {
    const remedy =
      'this URL names no agent: give your client the base URL with a slash at its end, /agents/<agent>/';
    throw new ProtocolError('agent-not-found', remedy);
  }

  private async find(slugOrId: string, request: FastifyRequest): Promise<Agent> {
    const agent = await this.agents.find(callerOf(request).tenantId, slugOrId);
    if (!agent) throw agentNotFound(slugOrId);
    return agent;
  }

  private async rootAgent(request: FastifyRequest): Promise<Agent> {
    if (request.headers.authorization === undefined) return SERVER_AGENT;
    const agent = await this.agents.defaultAgent(callerOf(request).tenantId);
    if (!agent)
      throw new ProtocolError('agent-not-found', "the tenant's default agent does not exist any more");
    return agent;
  }

  private async send(
    agent: Agent,
    form: CardForm,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const { json, etag } = await this.sheets.sheet(buildAgentCard(agent, this.publicUrl.value), form);
    const audience = agent === SERVER_AGENT ? 'public' : 'private';
    reply.headers({
      'cache-control': `${audience}, max-age=${String(MAX_AGE)}`,
      etag,
      vary: 'Authorization, A2A-Version',
    });
    if (matches(request.headers['if-none-match'], etag)) await reply.status(304).send();
    else await reply.header('content-type', 'application/json; charset=utf-8').send(json);
  }
}

/** Asked as 1.0 or as 0.3 the card is of that generation only, otherwise of both (wire contract P-11). */
function formFor(request: FastifyRequest): CardForm {
  const version = parseVersion(requestedVersion(request) ?? '');
  if (version === '1.0') return '1.0';
  return version === '0.3' ? '0.2' : 'both';
}

/** RFC 9110 §13.1.2: any of a list, compared without regard to weakness; `*` is whatever there is. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag.replace(/^W\//, ''));
}
