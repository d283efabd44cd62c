import { Messaging } from '@baton/messaging';
import { Controller, Get, Module, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OperatorOnly, Public } from '../access/access.guard.js';
import { AccessModule } from '../access/access.module.js';
import { ConsoleModule } from '../console/console.controller.js';
import { sendPlainError } from '../http/errors.js';
import { HttpModule } from '../http/http.module.js';
import { OnManagementPort } from '../management/management-port.js';
import { BullBoardSite } from './bull-board-site.js';

const OFF =
  'there is no Bull Board here: it is part of the console, and CONSOLE_ENABLED is false, or it is not built';

/** Bull Board, a page for operators. It names nothing before an operator has signed in. */
@Public()
@OnManagementPort()
@Controller('bull-board')
export class BullBoardController {
  constructor(private readonly site: BullBoardSite) {}

  @Get()
  async page(@Res() reply: FastifyReply): Promise<void> {
    if (this.site.isThere()) await this.site.sendPage(reply);
    else sendPlainError(reply, 404, OFF);
  }

  @Get('session.js')
  async script(@Res() reply: FastifyReply): Promise<void> {
    if (this.site.isThere()) await this.site.sendScript(reply);
    else sendPlainError(reply, 404, OFF);
  }

  @Get('static/*')
  async file(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (this.site.isThere()) await this.site.sendFile(request, reply);
    else sendPlainError(reply, 404, OFF);
  }

  /** Links into Bull Board. The page reads its own path. */
  @Get('*')
  async deepLink(@Res() reply: FastifyReply): Promise<void> {
    await this.page(reply);
  }
}

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

@Module({
  imports: [AccessModule, HttpModule, ConsoleModule],
  controllers: [BullBoardController, BullBoardApiController],
  providers: [BullBoardSite],
})
export class BullBoardModule {}
