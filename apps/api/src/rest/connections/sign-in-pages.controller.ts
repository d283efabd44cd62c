import { ProtocolError } from '@baton/a2a';
import {
  clientMetadata,
  clientUrlOf,
  OAuthFailure,
  OAuthSignIns,
  SecretError,
  SIGN_IN_PATH,
  type SignInFacts,
} from '@baton/identity';
import { Logger } from '@baton/telemetry';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counted, Public } from '../../access/route-access.js';
import { PublicUrl } from '../../http/public-url.js';

const FOLDER = '/oauth';
const CALLBACK_PATH = `${FOLDER}/callback`;
/** How long a browser has to come back, in seconds. */
const KEPT_SECONDS = 15 * 60;

/**
 * The pages of a sign-in at a server that agents call. They need no token: the link has a secret of its own. Before the browser
 * goes to the authorization server, a page names the user of the sign-in, because another person may have sent the link.
 */
@Public()
@Counted()
@Controller()
export class SignInPagesController {
  constructor(
    private readonly signIns: OAuthSignIns,
    private readonly publicUrl: PublicUrl,
    private readonly logger: Logger,
  ) {}

  @Get(SIGN_IN_PATH)
  async begin(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { ticket, go } = request.query as Record<string, unknown>;
    const named = textOf(ticket);
    await this.shown(reply, async () => {
      const facts = await this.signIns.find(named);
      if (!facts) throw new OAuthFailure('refused', 'this link is over: ask for a new one');
      if (go === undefined)
        return void page(reply, 200, 'Sign in', question(facts, this.publicUrl.path, named ?? ''));
      const opened = await this.signIns.open(named, keptBy(request, facts.id), this.redirectUri());
      if (!opened) throw new OAuthFailure('refused', 'this link is over: ask for a new one');
      reply
        .status(302)
        .headers({ location: opened.url, 'set-cookie': this.cookie(opened.id, opened.kept, KEPT_SECONDS) })
        .send();
    });
  }

  @Get(CALLBACK_PATH)
  async finish(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const query = request.query as Record<string, unknown>;
    const [state, code, iss] = [textOf(query.state), textOf(query.code), textOf(query.iss)];
    const [error, description] = [textOf(query.error), textOf(query.error_description)];
    const id = this.signIns.idOf(state);
    await this.shown(reply, async () => {
      const kept = id === undefined ? undefined : keptBy(request, id);
      const by = { address: request.ip, requestId: request.id };
      const facts = await this.signIns.finish(
        { state, code, iss, error, error_description: description },
        kept,
        by,
      );
      reply.header('set-cookie', this.cookie(facts.id, '', 0));
      const host = escaped(new URL(facts.resource).host);
      page(reply, 200, 'Signed in', `<p>Agents can use ${host} now. You can close this page.</p>`);
    });
  }

  /** Who Baton is, for authorization servers that take the URL of this document for a client id. */
  @Get(`${FOLDER}/client.json`)
  client(): object {
    const redirectUri = this.redirectUri();
    const clientUrl = clientUrlOf(redirectUri);
    if (clientUrl === undefined)
      throw new ProtocolError('not-found', 'PUBLIC_URL is not an https URL, so it is no client id');
    return { client_id: clientUrl, ...clientMetadata(redirectUri) };
  }

  private redirectUri(): string {
    return this.publicUrl.value + CALLBACK_PATH;
  }

  /** Proves that the browser that returns is the browser that was sent. */
  private cookie(id: string, value: string, seconds: number): string {
    const { path, value: url } = this.publicUrl;
    const secure = url.startsWith('https:') ? '; Secure' : '';
    return `${cookieName(id)}=${value}; Path=${path}${FOLDER}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
  }

  /** Shows why a sign-in fails, in words for a person. */
  private async shown(reply: FastifyReply, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof OAuthFailure || error instanceof SecretError)) throw error;
      this.logger.info('sign-in failed', { reason: error.message });
      const status = error instanceof OAuthFailure && error.kind === 'refused' ? 400 : 502;
      page(reply, status, 'Not signed in', `<p>The sign-in has failed: ${escaped(error.message)}.</p>`);
    }
  }
}

function question({ agent, resource, caller }: SignInFacts, base: string, ticket: string): string {
  const whose = caller === null ? 'every caller of the tenant' : `the caller ${caller}`;
  return [
    `<p>The agent <b>${escaped(agent)}</b> wants to use <b>${escaped(resource)}</b> with your account, for ${escaped(whose)}.</p>`,
    '<p>Continue only if you have asked for this sign-in yourself, or trust the person who has sent you this link.</p>',
    `<p><a href="${escaped(base + SIGN_IN_PATH)}?ticket=${escaped(ticket)}&amp;go=1">Continue to the sign-in</a></p>`,
  ].join('\n');
}

/** A page without scripts and styles, which the headers of every answer forbid. */
function page(reply: FastifyReply, status: number, title: string, body: string): void {
  reply
    .status(status)
    .header('content-type', 'text/html; charset=utf-8')
    .send(
      `<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>${title} - Baton</title></head>\n` +
        `<body>\n<h1>${title}</h1>\n${body}\n</body>\n</html>\n`,
    );
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign);

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const cookieName = (id: string): string => `baton_sign_in_${id}`;

/** The cookie of this sign-in in the browser. */
function keptBy({ headers }: FastifyRequest, id: string): string | undefined {
  const cookies = (headers.cookie ?? '').split(';').map((each) => each.trim());
  const prefix = `${cookieName(id)}=`;
  return cookies.find((each) => each.startsWith(prefix))?.slice(prefix.length) || undefined;
}
