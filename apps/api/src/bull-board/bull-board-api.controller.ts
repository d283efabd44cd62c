import { Messaging } from '@baton/messaging';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OperatorOnly } from '../access/access.guard.js';
import { sendPlainError } from '../http/errors.js';
import { OnManagementPort } from '../management/management-port.js';

/**
 * What Bull Board's page asks for: the queues and their jobs, which are ids. It is Bull Board's own interface, which may change
 * with its releases, so the API document does not have it. Nothing here writes: no other method has a route.
 */
@OperatorOnly()
@OnManagementPort()
@Controller('bull-board/api')
export class BullBoardApiController {
  constructor(private readonly messaging: Messaging) {}

  @Get('*')
  async read(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { '*': path } = request.params as { '*': string };
    const given = Object.entries(request.query as Record<string, string | string[]>);
    const query = Object.fromEntries(given.map(([name, value]) => [name, [value].flat().at(-1) ?? '']));
    const answer = await this.messaging.readBoard(`/api/${path}`, query);
    if (answer) await reply.status(answer.status).header('cache-control', 'no-store').send(answer.body);
    else sendPlainError(reply, 404, 'Bull Board has nothing to read at this path');
  }
}
