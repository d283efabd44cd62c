import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '../access/access.guard.js';
import { sendPlainError } from '../http/errors.js';
import { ConsoleSite } from './console-site.js';
const NONE =
  'there is no console here: it is at hosts that are not bound to an agent, unless CONSOLE_ENABLED is false';

/** The console: a page for people, which calls the REST API with the token of whoever has signed in (ADR 0032). */
@Public()
@Controller('console')
export class ConsoleController {
  constructor(private readonly site: ConsoleSite) {}

  @Get()
  async page(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (await this.site.isAt(request)) await this.site.sendPage(reply, 'tenants');
    else sendPlainError(reply, 404, NONE);
  }

  /** What the page must know to let people sign in. */
  @Get('settings.json')
  async settings(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (await this.site.isAt(request)) await reply.send(this.site.settings());
    else sendPlainError(reply, 404, NONE);
  }

  @Get('assets/:file')
  async asset(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (await this.site.isAt(request)) await this.site.sendAsset(request, reply);
    else sendPlainError(reply, 404, NONE);
  }

  /** Links into the console. The page reads its own path. */
  @Get('*')
  async deepLink(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.page(request, reply);
  }
}
