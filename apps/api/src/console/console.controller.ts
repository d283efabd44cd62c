import { Controller, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counted, Public } from '../access/route-access.js';
import { sendPlainError } from '../http/errors.js';
import { ConsoleSite } from './console-site.js';
import { SignInLink } from './sign-in-link.js';

const NO_CONSOLE =
  'there is no console here: it is at hosts that are not bound to an agent, unless CONSOLE_ENABLED is false';

const NO_LINK =
  'this link no longer works: it signs in once, within ten minutes, on the machine of `npm start`. Sign in with the token that `npm start` prints, or start it again';

/** The console: a page for people, which calls the REST API with the token of its user (ADR 0032). */
@Public()
@Counted()
@Controller('console')
export class ConsoleController {
  constructor(
    private readonly site: ConsoleSite,
    private readonly link: SignInLink,
  ) {}

  @Get()
  async page(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (await this.site.isAt(request)) await this.site.sendPage(reply, 'tenants');
    else sendPlainError(reply, 404, NO_CONSOLE);
  }

  /** The settings of the sign-in page. */
  @Get('settings.json')
  async settings(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (await this.site.isAt(request)) await reply.send(this.site.settings());
    else sendPlainError(reply, 404, NO_CONSOLE);
  }

  @Get('assets/:file')
  async asset(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (await this.site.isAt(request)) await this.site.sendAsset(request, reply);
    else sendPlainError(reply, 404, NO_CONSOLE);
  }

  /** Exchanges the code of the link that `npm start` prints for a token. The code is in `Authorization`, so that no log has it. */
  @Post('sign-in-link')
  @HttpCode(200)
  async signIn(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const token = this.link.redeem(request);
    if (token === undefined) sendPlainError(reply, 404, NO_LINK);
    else await reply.send({ token });
  }

  /** Links into the console. The page reads its own path. */
  @Get('*')
  async deepLink(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.page(request, reply);
  }
}
