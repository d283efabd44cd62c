import { type AgentCard, CARD_SCOPES, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public, RequireScope } from '../access/route-access.js';
import { AgentCards } from '../core/agent-cards.js';
import { AgentFinder } from '../core/agent-finder.js';
import { CardRenderer } from './card-renderer.js';
import { cardFormFor, sendCard } from './send-card.js';

/** The card of one agent, for callers of its tenant (A2A 1.0 §8). */
@RequireScope(...CARD_SCOPES)
@Controller('agents')
export class CardsController {
  constructor(
    private readonly agents: AgentFinder,
    private readonly renderer: CardRenderer,
    private readonly cards: AgentCards,
  ) {}

  @Get(':agent/.well-known/agent-card.json')
  async agentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const card = await this.cardOf(request, slugOrId);
    await sendCard(await this.renderer.render(card, cardFormFor(request)), 'private', request, reply);
  }

  /** The address that clients of 0.2 use. */
  @Get(':agent/.well-known/agent.json')
  async flatAgentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const card = await this.cardOf(request, slugOrId);
    await sendCard(await this.renderer.render(card, '0.2'), 'private', request, reply);
  }

  /** A client that resolves the card against `/agents/echo` asks for this path, which has lost the agent's name. */
  @Public()
  @Get('.well-known/:card')
  lostAgent(): never {
    const remedy =
      'this URL names no agent: give your client the base URL with a slash at its end, /agents/<agent>/';
    throw new ProtocolError('agent-not-found', remedy);
  }

  private async cardOf(request: FastifyRequest, slugOrId: string): Promise<AgentCard> {
    const agent = await this.agents.named(callerOf(request), slugOrId);
    return this.cards.unsigned(agent, request);
  }
}
