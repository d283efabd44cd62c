import {
  type AgentCard,
  CARD_SCOPES,
  PROFILES,
  type Profile,
  type ProfileCard,
  ProtocolError,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { Controller, Get, Module, Param, Req, Res, type Type } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public, RequireScope } from '../access/access.guard.js';
import { AccessModule } from '../access/access.module.js';
import { AgentCards } from '../core/agent-cards.js';
import { AgentFinder } from '../core/request-context.js';
import { CoreModule } from '../core/core.module.js';
import { HttpModule } from '../http/http.module.js';
import { PublicUrl } from '../http/public-url.js';
import { Describe } from '../openapi/route.js';
import { a2aSchema } from '../openapi/schemas.js';
import { CardSheets, cardFormFor, sendCard } from './card-sheets.js';
import { JwksController } from './jwks.controller.js';
import { RootCardsController } from './root-cards.controller.js';

/** The card of one agent, for callers of its tenant (A2A 1.0 §8). */
@RequireScope(...CARD_SCOPES)
@Controller('agents')
export class CardsController {
  constructor(
    private readonly agents: AgentFinder,
    private readonly sheets: CardSheets,
    private readonly cards: AgentCards,
  ) {}

  @Get(':agent/.well-known/agent-card.json')
  async agentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const card = await this.cardOf(request, slugOrId);
    await sendCard(await this.sheets.sheet(card, cardFormFor(request)), 'private', request, reply);
  }

  /** The address that clients of 0.2 use. */
  @Get(':agent/.well-known/agent.json')
  async flatAgentCard(
    @Param('agent') slugOrId: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const card = await this.cardOf(request, slugOrId);
    await sendCard(await this.sheets.sheet(card, '0.2'), 'private', request, reply);
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

/** A controller for the card that one profile has of each agent, for callers of the agent's tenant. */
function profileCardController(card: ProfileCard): Type {
  @RequireScope(...CARD_SCOPES)
  @Controller(card.path)
  class ProfileCardController {
    constructor(
      private readonly agents: AgentFinder,
      private readonly sheets: CardSheets,
      private readonly publicUrl: PublicUrl,
      private readonly environment: Environment,
    ) {}

    @Describe({ id: 'getAgentCard', summary: 'The card of an agent', answer: a2aSchema('The card') })
    @Get()
    async card(
      @Param('agent') slugOrId: string,
      @Req() request: FastifyRequest,
      @Res() reply: FastifyReply,
    ): Promise<void> {
      const agent = await this.agents.named(callerOf(request), slugOrId);
      const { pushNotifications } = this.environment;
      const sheet = this.sheets.unsigned(card.encode(agent, this.publicUrl.of(request), pushNotifications));
      await sendCard(sheet, 'private', request, reply);
    }
  }
  return ProfileCardController;
}

/** The cards that profiles have of each agent, beside the specification's. */
const PROFILE_CARDS = Object.values<Profile>(PROFILES)
  .flatMap(({ card }) => card ?? [])
  .filter(({ path }) => path.includes('/:agent/'));

/** Agent cards, of each agent and at the root. */
@Module({
  imports: [AccessModule, CoreModule, HttpModule],
  controllers: [
    CardsController,
    RootCardsController,
    JwksController,
    ...PROFILE_CARDS.map(profileCardController),
  ],
  providers: [CardSheets],
})
export class CardsModule {}
