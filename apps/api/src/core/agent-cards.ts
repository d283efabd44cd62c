import { type Agent, type AgentCard, buildAgentCard, type PushPolicy } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { PublicUrl } from '../http/public-url.js';
import type { CallRequest } from '../http/requests.js';
import { CardSigner } from './card-signer.js';

/** Builds the specification's cards of agents. */
@Injectable()
export class AgentCards {
  private readonly push: PushPolicy;

  constructor(
    private readonly publicUrl: PublicUrl,
    private readonly signer: CardSigner,
    { pushNotifications }: Environment,
  ) {
    this.push = pushNotifications;
  }

  /** The card of an agent with the URLs at which this request has reached it, unsigned. */
  unsigned(agent: Agent, request: CallRequest): AgentCard {
    return buildAgentCard(agent, this.publicUrl.urlFor(request), this.publicUrl.grpcOf(request), this.push);
  }

  /**
   * The card of an agent at the root of the host it is bound to, which is its only address there, unsigned.
   * @param needsToken false if callers need no token
   */
  atRoot(agent: Agent, origin: string, needsToken: boolean): AgentCard {
    const card = buildAgentCard(agent, origin, undefined, this.push);
    const grpc = this.publicUrl.grpcAt(origin);
    const addresses = [{ url: `${origin}/`, protocolBinding: 'JSONRPC' }];
    if (grpc !== undefined) addresses.push({ url: grpc, protocolBinding: 'GRPC' });
    const supportedInterfaces = addresses.flatMap((address) =>
      ROOT_VERSIONS.map((protocolVersion) => ({ ...address, protocolVersion, tenant: '' })),
    );
    const securityRequirements = needsToken ? card.securityRequirements : [];
    return { ...card, supportedInterfaces, securityRequirements };
  }

  /**
   * The card of an agent with the URLs at which this request has reached it, signed if a key is configured.
   * @param isRoot whether the request's host is bound to the agent, and the caller called its root
   */
  build(agent: Agent, request: CallRequest, isRoot: boolean): Promise<AgentCard> {
    const url = this.publicUrl.urlFor(request);
    const { host } = request.headers;
    const card =
      isRoot && host !== undefined
        ? this.atRoot(agent, `${new URL(url).protocol}//${host}`, true)
        : this.unsigned(agent, request);
    return this.signer.sign(card);
  }
}

/** The protocol versions at the root, the preferred one first. */
const ROOT_VERSIONS = ['1.0', '0.3'];
