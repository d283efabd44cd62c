import { CARD_SCOPES, PROFILES, type Profile, type ProfileCard } from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { Controller, Get, Module, Param, Req, Res, type Type } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequireScope } from '../access/route-access.js';
import { AccessModule } from '../access/access.module.js';
import { AgentFinder } from '../core/agent-finder.js';
import { CoreModule } from '../core/core.module.js';
import { HttpModule } from '../http/http.module.js';
import { PublicUrl } from '../http/public-url.js';
import { Describe } from '../openapi/route.js';
import { a2aSchema } from '../openapi/schemas.js';
import { CardRenderer } from './card-renderer.js';
import { sendCard } from './send-card.js';
import { JwksController } from './jwks.controller.js';
import { RootCardsController } from './root-cards.controller.js';
import { CardsController } from './cards.controller.js';

/** A controller for the cards of agents in the form of one profile, for callers of the agent's tenant. */
function profileCardController(card: ProfileCard): Type {
  @RequireScope(...CARD_SCOPES)
  @Controller(card.path)
  class ProfileCardController {
    constructor(
      private readonly agents: AgentFinder,
      private readonly renderer: CardRenderer,
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
      const rendered = this.renderer.renderUnsigned(
        card.encode(agent, this.publicUrl.urlFor(request), pushNotifications),
      );
      await sendCard(rendered, 'private', request, reply);
    }
  }
  return ProfileCardController;
}

/** Cards of agents in forms of profiles, beside the specification's. */
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
  providers: [CardRenderer],
})
export class CardsModule {}
