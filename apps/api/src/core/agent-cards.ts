import { type Agent, type AgentCard, buildAgentCard } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { PublicUrl } from '../http/public-url.js';
import type { CallRequest } from '../http/requests.js';
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
  build(agent: Agent, request: CallRequest, isRoot: boolean): Promise<AgentCard> {
    const url = this.publicUrl.of(request);
    const { host } = request.headers;
    const card =
      isRoot && host !== undefined
        ? this.rootCard(agent, `${new URL(url).protocol}//${host}`)
        : buildAgentCard(agent, url, this.publicUrl.grpcOf(request));
    return this.signer.sign(card);
  }

  private rootCard(agent: Agent, origin: string): AgentCard {
    return buildRootCard(agent, { origin, grpc: this.publicUrl.grpcAt(origin) }, true);
  }
}

/** The protocol versions at the root, the preferred one first. */
const ROOT_VERSIONS = ['1.0', '0.3'];

/**
 * The card of an agent at the root of the host it is bound to, which is its only address there.
 * @param at the origin of the host, and the gRPC port there if there is one
 * @param needsToken false for callers that are let in without one
 */
export function buildRootCard(
  agent: Agent,
  { origin, grpc }: { origin: string; grpc: string | undefined },
  needsToken: boolean,
): AgentCard {
  const card = buildAgentCard(agent, origin);
  const addresses = [{ url: `${origin}/`, protocolBinding: 'JSONRPC' }];
  if (grpc !== undefined) addresses.push({ url: grpc, protocolBinding: 'GRPC' });
  const supportedInterfaces = addresses.flatMap((address) =>
    ROOT_VERSIONS.map((protocolVersion) => ({ ...address, protocolVersion, tenant: '' })),
  );
  const securityRequirements = needsToken ? card.securityRequirements : [];
  return { ...card, supportedInterfaces, securityRequirements };
}
