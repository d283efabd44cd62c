import { PROFILES, type Profile, type ProfileCard } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { Controller, Get, Param, Req, Res, type Type } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PublicUrl } from '../http/public-url.js';
import { AgentFinder } from './agent-finder.js';
import { CardSheets } from './card-sheets.js';
import { sendCard } from './send-card.js';

/** The cards that profiles have of each agent, beside the specification's. */
const PROFILE_CARDS = Object.values<Profile>(PROFILES)
  .flatMap(({ card }) => card ?? [])
  .filter(({ path }) => path.includes('/:agent/'));

/** A controller for the card of one profile, for callers of the agent's tenant. */
function profileCardController(card: ProfileCard): Type {
  @Controller(card.path)
  class ProfileCardController {
    constructor(
      private readonly agents: AgentFinder,
      private readonly sheets: CardSheets,
      private readonly publicUrl: PublicUrl,
    ) {}

    @Get()
    async card(
      @Param('agent') slugOrId: string,
      @Req() request: FastifyRequest,
      @Res() reply: FastifyReply,
    ): Promise<void> {
      const agent = await this.agents.named(callerOf(request).tenantId, slugOrId);
      const sheet = this.sheets.unsigned(card.encode(agent, this.publicUrl.value));
      await sendCard(sheet, 'private', request, reply);
    }
  }
  return ProfileCardController;
}

export const PROFILE_CARD_CONTROLLERS: Type[] = PROFILE_CARDS.map(profileCardController);
