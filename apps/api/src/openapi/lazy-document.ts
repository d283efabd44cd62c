import type { Type } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import fresh from 'fresh';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Route, routesOf } from './route.js';

/** Seconds for which a client keeps the document. It changes only with a release. */
const MAX_AGE = 300;
const BASE = '/v1/';

/** A document ready to be sent. */
interface RenderedDocument {
  /** One buffer for all callers: a text would be copied for each that does not read it. */
  json: Buffer;
  /** As the header has it, quotes included. */
  etag: string;
}

/** Writes the document of one port when it is first asked for: to start is not slower for it. */
export class LazyDocument {
  private rendered: RenderedDocument | undefined;

  constructor(private readonly write: () => object) {}

  /** Answers with the document, or with 304 if the caller has it already. */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    this.rendered ??= renderDocument(this.write());
    const { json, etag } = this.rendered;
    reply.headers({ 'cache-control': `public, max-age=${String(MAX_AGE)}`, etag });
    if (fresh({ 'if-none-match': request.headers['if-none-match'] }, { etag }))
      await reply.status(304).send();
    else await reply.header('content-type', 'application/json; charset=utf-8').send(json);
  }
}

function renderDocument(document: object): RenderedDocument {
  const json = JSON.stringify(document);
  const hash = createHash('sha256').update(json).digest('base64url').slice(0, 27);
  return { json: Buffer.from(json), etag: `"${hash}"` };
}

/** The routes below `/v1` of one of the ports, in all modules. */
export const routesAt = (discovery: DiscoveryService, isManagement: boolean): Route[] =>
  discovery
    .getControllers()
    .flatMap(({ metatype }) => routesOf(metatype as Type))
    .filter((route) => route.isManagement === isManagement && route.path.startsWith(BASE));

/** A document of OpenAPI. A schema of it would be larger than all others. */
export const openApi = z.record(z.string(), z.unknown());
