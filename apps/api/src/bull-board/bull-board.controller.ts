import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '../access/access.guard.js';
import { sendPlainError } from '../http/errors.js';
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
