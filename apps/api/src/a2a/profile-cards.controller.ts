import { PROFILES, type Profile, type ProfileCard } from '@baton/a2a';
import { BearerGuard, callerOf } from '@baton/identity';
import { Controller, Get, Param, Req, Res, type Type, UseGuards } from '@nestjs/common';
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
    @UseGuards(BearerGuard)
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

/** Every path that has a card for GET; other methods on them are refused. */
export const CARD_PATHS: readonly string[] = [
  '/.well-known/agent-card.json',
  '/.well-known/agent.json',
  '/agents/:agent/.well-known/agent-card.json',
  '/agents/:agent/.well-known/agent.json',
  ...PROFILE_CARDS.map(({ path }) => path),
];
