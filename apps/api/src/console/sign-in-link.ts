import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { createHash, timingSafeEqual } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { inNetworks } from '../http/networks.js';

/** The message of `npm start` with the link that it prints. */
export interface SignInLinkMessage {
  type: 'sign-in-link';
  /** Stands in the link, after `#`. */
  code: string;
  /** The token that the code is exchanged for. */
  token: string;
  /** In ms since 1970. */
  expiresAt: number;
}

const isLoopback = inNetworks(['127.0.0.0/8', '::1']);

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * The link that `npm start` prints: its code is exchanged once for the token of the tenant `demo`. `npm start` sends it once,
 * over the channel to its child. Only the memory of this process has the link, so a restart ends it. Without `npm start` there is none.
 */
@Injectable()
export class SignInLink {
  private link: SignInLinkMessage | undefined;

  /** @param parent the channel to the process that has started this one */
  listenTo(parent: Pick<EventEmitter, 'on'>): void {
    parent.on('message', (message: unknown) => {
      const { type } = (message ?? {}) as Partial<SignInLinkMessage>;
      if (type === 'sign-in-link') this.link = message as SignInLinkMessage;
    });
  }

  /** The token for the code in `Authorization`. Undefined: it is not the code, was used, has expired, or comes from another machine. */
  redeem(request: FastifyRequest): string | undefined {
    const [, code] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    const { link } = this;
    if (!link || code === undefined || !isFromThisMachine(request)) return undefined;
    if (Date.now() >= link.expiresAt || !timingSafeEqual(digest(code), digest(link.code))) return undefined;
    this.link = undefined;
    return link.token;
  }
}

/** A proxy on this machine connects from loopback for callers from anywhere. */
const isFromThisMachine = ({ raw, headers }: FastifyRequest): boolean =>
  isLoopback(raw.socket.remoteAddress ?? '') &&
  headers.forwarded === undefined &&
  headers['x-forwarded-for'] === undefined;
