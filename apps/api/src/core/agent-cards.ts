import { type Agent, type AgentCard, buildAgentCard } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PublicUrl } from '../http/public-url.js';
import { CardSigner } from './card-signer.js';

/** Builds the cards that operations answer with. */
@Injectable()
export class AgentCards {
  constructor(
    private readonly publicUrl: PublicUrl,
    private readonly signer: CardSigner,
  ) {}

  /**
   * The card of an agent with the URLs at which this request has reached it, signed if a key is configured.
   * @param isRoot whether the agent is the one that the request's host is bound to, and the caller called its root
   */
  build(agent: Agent, request: FastifyRequest, isRoot: boolean): Promise<AgentCard> {
    const url = this.publicUrl.of(request);
    const { host } = request.headers;
    const card =
      isRoot && host !== undefined
        ? buildRootCard(agent, `${new URL(url).protocol}//${host}`, true)
        : buildAgentCard(agent, url);
    return this.signer.sign(card);
  }
}

/** The protocol versions at the root, the preferred one first. */
const ROOT_VERSIONS = ['1.0', '0.3'];

/**
 * The card of an agent at the root of the host it is bound to, which is its only address there.
 * @param needsToken false for callers that are let in without one
 */
export function buildRootCard(agent: Agent, origin: string, needsToken: boolean): AgentCard {
  const card = buildAgentCard(agent, origin);
  const supportedInterfaces = ROOT_VERSIONS.map((protocolVersion) => ({
    url: `${origin}/`,
    protocolBinding: 'JSONRPC',
    protocolVersion,
    tenant: '',
  }));
  const securityRequirements = needsToken ? card.securityRequirements : [];
  return { ...card, supportedInterfaces, securityRequirements };
}
