import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { assertPlainText } from '../http/plain-text.js';
import { descriptionOf } from './route.js';

/**
 * Refuses control characters and lone surrogates in the path and the query of every route of the REST API and of the
 * operators' API.
 */
@Injectable()
export class PlainTextGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const description = descriptionOf(context.getHandler());
    // Routes of A2A answer in the form of their protocol. Their codecs check the ids.
    if (!description || description.errors) return true;
    const { params, query } = context.switchToHttp().getRequest<FastifyRequest>();
    assertPlainText({ ...(params as object), ...(query as object) }, '');
    return true;
  }
}
