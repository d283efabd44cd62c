import { type Agent, CARD_SCOPES, type CardForm, PROFILES, type ProfileCard } from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OptionalToken, RequireScope } from '../access/route-access.js';
import { HostBindings } from '../access/host-bindings.js';
import { hasToken } from '../http/requests.js';
import { PublicUrl } from '../http/public-url.js';
import { AgentCards } from '../core/agent-cards.js';
import { AgentFinder } from '../core/agent-finder.js';
import { type RenderedCard, CardRenderer } from './card-renderer.js';
import { cardFormFor, sendCard } from './send-card.js';

const FLAT_CARD = '/.well-known/agent.json';

/** How the profile at the root writes the flat card, if one does. */
const FLAT_PROFILE_CARD = Object.values(PROFILES)
  .map(({ card }: { card?: ProfileCard }) => card)
  .find((card) => card?.path === FLAT_CARD);

/**
 * The server's own card, for callers without a token. Its address is that of the built-in agent of every tenant, so a
 * client with this card and a token gets answers.
 */
const SERVER_AGENT: Agent = {
  id: 'index',
  slug: 'index',
  origin: 'builtin',
  definition: {
    name: 'Baton',
    description:
      "A durable, multi-tenant A2A server. With a tenant's bearer token, this address shows the card of " +
      "the tenant's default agent. Every agent has its own card below /agents/{agent}/.well-known/.",
    version: '1.0',
    runtime: 'index',
    config: {},
    skills: [],
    inputModes: [],
    outputModes: [],
    extensions: [],
  },
};

/** The agent whose card a caller gets at the root. */
interface RootAgent {
  agent: Agent;
  /** The URL of the root of the bound host, without a slash at the end. */
  origin?: string;
}

/**
 * The card at the root. At a bound host, callers who may call its agent get the agent's card. Other callers with a
 * token get the card of their default agent. All other callers get the server's card.
 */
@OptionalToken()
@RequireScope(...CARD_SCOPES)
@Controller()
export class RootCardsController {
  constructor(
    private readonly agents: AgentFinder,
    private readonly hosts: HostBindings,
    private readonly renderer: CardRenderer,
    private readonly publicUrl: PublicUrl,
    private readonly cards: AgentCards,
    private readonly environment: Environment,
  ) {}

  @Get('.well-known/agent-card.json')
  async card(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const root = await this.rootAgent(request);
    await sendCard(
      await this.rendered(root, cardFormFor(request), request),
      this.audienceOf(root, request),
      request,
      reply,
    );
  }

  /** The address that clients of Society and of 0.2 use. */
  @Get(FLAT_CARD)
  async flatCard(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const root = await this.rootAgent(request);
    const { agent, origin } = root;
    const rendered =
      origin !== undefined && FLAT_PROFILE_CARD
        ? this.renderer.renderUnsigned(
            withoutToken(
              FLAT_PROFILE_CARD.encode(agent, origin, this.environment.pushNotifications),
              request,
            ),
          )
        : await this.rendered(root, '0.2', request);
    await sendCard(rendered, this.audienceOf(root, request), request, reply);
  }

  private rendered(
    { agent, origin }: RootAgent,
    form: CardForm,
    request: FastifyRequest,
  ): Promise<RenderedCard> {
    const card =
      origin === undefined
        ? this.cards.unsigned(agent, request)
        : this.cards.atRoot(agent, origin, hasToken(request));
    return this.renderer.render(card, form);
  }

  /** The card at a bound host is the same for all callers there. */
  private audienceOf({ origin }: RootAgent, request: FastifyRequest): 'public' | 'private' {
    const isSame = origin !== undefined || this.publicUrl.isShared(request);
    return isSame && !hasToken(request) ? 'public' : 'private';
  }

  private async rootAgent(request: FastifyRequest): Promise<RootAgent> {
    const binding = await this.hosts.find(request);
    const caller = hasToken(request) ? callerOf(request) : undefined;
    const isOpen = binding?.public && !caller;
    if (binding && (isOpen || binding.tenantId === caller?.tenantId)) {
      const origin = `${new URL(this.publicUrl.urlFor(request)).protocol}//${request.headers.host ?? binding.host}`;
      return { agent: await this.agents.named(caller ?? binding, binding.agent), origin };
    }
    return { agent: caller ? await this.agents.defaultAgent(caller) : SERVER_AGENT };
  }
}

/** The card for a guest asks for no token. */
const withoutToken = (card: Record<string, unknown>, request: FastifyRequest): Record<string, unknown> =>
  hasToken(request) ? card : { ...card, security: [] };
