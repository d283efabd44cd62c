import { BOARD_SETTINGS } from '@baton/messaging';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConsoleSite } from '../console/console-site.js';
import { sendPlainError } from '../http/errors.js';

const PAGE = '/bull-board/';
const YEAR_MS = 365 * 24 * 60 * 60 * 1000;
/** Names with the hash of their content. The others may change with the next release. */
const HASHED = /\.[\da-f]{10}\.(?:js|css)$/;

/** Bull Board's page and its files, under the policy of the console. Nothing of them is loaded before somebody asks. */
@Injectable()
export class BullBoardSite {
  private page: Promise<string> | undefined;

  constructor(private readonly console: ConsoleSite) {}

  /** Whether it is there: operators sign in at the console. */
  isThere(): boolean {
    return this.console.isThere();
  }

  /** Answers any path below `/bull-board` with the page, which shows what the path names. */
  async sendPage(reply: FastifyReply): Promise<void> {
    this.page ??= makePage();
    const nonce = randomBytes(16).toString('base64url');
    const headers = this.console.headers(nonce, 'operators');
    await reply
      .headers({
        ...headers,
        'content-security-policy': policyOf(headers['content-security-policy']),
        'content-type': 'text/html; charset=utf-8',
      })
      .send(await this.page);
  }

  /** Answers with what signs the requests of the page. */
  async sendScript(reply: FastifyReply): Promise<void> {
    const script = await this.console.readFile('bull-board.js');
    await reply.header('content-type', 'text/javascript; charset=utf-8').send(script);
  }

  /** Answers with one of the files of Bull Board. */
  async sendFile(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { send } = await import('@fastify/send');
    const [path = ''] = (request.raw.url ?? '').split('?', 1);
    const name = path.slice(PAGE.length - 1);
    const file = await send(request.raw, name, {
      root: join(folder(), 'dist'),
      dotfiles: 'deny',
      index: false,
      ...(HASHED.test(name) ? { maxAge: YEAR_MS, immutable: true } : { maxAge: 0 }),
    });
    if (file.type !== 'file') {
      file.stream.destroy();
      sendPlainError(reply, 404, 'there is no such file: load the page again');
      return;
    }
    await reply.status(file.statusCode).headers(file.headers).send(file.stream);
  }
}

const folder = (): string => dirname(require.resolve('@bull-board/ui/package.json'));

/** The colours of a sign that Bull Board draws with a style element. */
const SIGN = "'sha256-r2N1TB/gHbBtBZFKg7ejmq1acVSREzucTAEw6ga4hoU='";

/** The policy of the console, and what Bull Board needs besides: it reads its own path from a <base>. */
const policyOf = (policy: string): string =>
  policy
    .replace("base-uri 'none'", "base-uri 'self'")
    .replace("style-src 'self'", `style-src 'self' ${SIGN}`);

/** Bull Board's own page has fonts of another server, styles in its elements, and nothing that signs requests. */
async function makePage(): Promise<string> {
  const template = await readFile(join(folder(), 'dist/index.ejs'), 'utf8');
  const scripts = template.match(/static\/js\/[\w.-]+\.js/g) ?? [];
  const styles = template.match(/static\/css\/[\w.-]+\.css/g) ?? [];
  const { boardTitle: title, favIcon } = BOARD_SETTINGS;
  const settings = JSON.stringify(BOARD_SETTINGS).replaceAll('<', '\\u003c');
  return `<!doctype html>
<html lang="en" dir="ltr">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <base href="${PAGE}" />
    <title>${title}</title>
    <link rel="icon" href="${favIcon?.default}" type="image/svg+xml" />
    ${styles.map((href) => `<link rel="stylesheet" href="${href}" />`).join('\n    ')}
  </head>
  <body class="preload">
    <script id="__UI_CONFIG__" type="application/json">${settings}</script>
    <div id="root"></div>
    <noscript>Bull Board needs JavaScript.</noscript>
    ${['session.js', ...scripts].map((src) => `<script defer src="${src}"></script>`).join('\n    ')}
  </body>
</html>
`;
}
