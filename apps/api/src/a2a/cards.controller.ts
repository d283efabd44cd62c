import { buildAgentCard, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '../access/access.guard.js';
import { PublicUrl } from '../http/public-url.js';
import { AgentFinder } from './agent-finder.js';
import { cardFormFor, CardSheets } from './card-sheets.js';
import { sendCard } from './send-card.js';

/** The card of one agent, for callers of its tenant (A2A 1.0 §8). */
@Controller('agents')
export class CardsController {
  constructor(
    private readonly agents: AgentFinder,
    private readonly sheets: CardSheets,
    private readonly publicUrl: PublicUrl,
  ) {}

  @Get(':agent/.well-known/agent-card.json')
  async agentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const agent = await this.agents.named(callerOf(request).tenantId, slugOrId);
    const card = buildAgentCard(agent, this.publicUrl.value);
    await sendCard(await this.sheets.sheet(card, cardFormFor(request)), 'private', request, reply);
  }

  /** Where clients of 0.2 look. */
  @Get(':agent/.well-known/agent.json')
  async flatAgentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const agent = await this.agents.named(callerOf(request).tenantId, slugOrId);
    const card = buildAgentCard(agent, this.publicUrl.value);
    await sendCard(await this.sheets.sheet(card, '0.2'), 'private', request, reply);
  }

  /** What a client asks for that resolves the card against `/agents/echo`: the agent's name gets lost. */
  @Public()
  @Get('.well-known/:card')
  lostAgent(): never {
    const remedy =
      'this URL names no agent: give your client the base URL with a slash at its end, /agents/<agent>/';
    throw new ProtocolError('agent-not-found', remedy);
  }
}
