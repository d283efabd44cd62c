import { COMMAND_LINE, Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HostBindings } from '../access/host-bindings.js';
import { vary } from '../http/requests.js';
import { sendPlainError } from '../http/errors.js';
import { PublicUrl } from '../http/public-url.js';

/** Where `apps/console/build.mjs` writes: `dist/console`, seen from the compiled file. */
const BUILT = join(__dirname, '../../../../console');
const ASSETS = '/console/assets/';
/** Placeholder in the built page for the nonce of each answer (`apps/console/vite.config.mts`). */
const NONCE = /__CSP_NONCE__/g;
/** Placeholder for the audience of the page. */
const AUDIENCE = '__CONSOLE_AUDIENCE__';
/** Placeholder for the path of PUBLIC_URL. */
const BASE = '__CONSOLE_BASE__';
/** Placeholder for the command that calls the command line. */
const COMMAND_LINE_META = '__CONSOLE_COMMAND_LINE__';
/** Where the page names a file of the console. */
const FILE = /(?<=(?:src|href)=")\/console\//g;
const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

/** Users of a console: people of a tenant, or operators, at the management port alone. */
export type ConsoleAudience = 'tenants' | 'operators';

/** The settings that the page needs before the user has signed in. */
export interface ConsoleSettings {
  /** Unset: people sign in with a token only. */
  oidc?: { issuer: string; client_id: string; scope: string; audience?: string };
}

/**
 * The files of the console: one page, and its hashed assets. They contain nothing of a tenant. The page is the same at either
 * port, but for the name of its audience.
 */
@Injectable()
export class ConsoleSite {
  private page: Promise<string> | undefined;

  constructor(
    private readonly environment: Environment,
    private readonly hosts: HostBindings,
    private readonly publicUrl: PublicUrl,
  ) {}

  /**
   * Whether there is a console at the host of a request. A host that is bound to an agent has none: its callers are the guests
   * or users of that agent, and scripts of its other pages share its origin.
   */
  async isAt(request: FastifyRequest): Promise<boolean> {
    return this.isAvailable() && (await this.hosts.find(request)) === undefined;
  }

  /** Whether the console is built and turned on. */
  isAvailable(): boolean {
    return this.environment.consoleEnabled && existsSync(join(BUILT, 'index.html'));
  }

  /** How people sign in here. */
  settings(): ConsoleSettings {
    const { consoleOidcIssuer: issuer, consoleOidcClientId: clientId, ...rest } = this.environment;
    if (issuer === undefined || clientId === undefined) return {};
    const { consoleOidcScope: scope, consoleOidcAudience: audience } = rest;
    return { oidc: { issuer, client_id: clientId, scope, ...(audience !== undefined && { audience }) } };
  }

  /** Answers any path below `/console` with the page, which shows what the path names. */
  async sendPage(reply: FastifyReply, audience: ConsoleAudience): Promise<void> {
    this.page ??= readFile(join(BUILT, 'index.html'), 'utf8');
    const nonce = randomBytes(16).toString('base64url');
    // Operators are at the management port, which PUBLIC_URL does not name.
    const base = audience === 'tenants' ? this.publicUrl.path : '';
    const html = (await this.page)
      .replace(NONCE, nonce)
      .replace(AUDIENCE, audience)
      .replace(COMMAND_LINE_META, () => COMMAND_LINE)
      .replace(BASE, () => base)
      .replace(FILE, () => `${base}/console/`);
    // Not stored: a nonce is valid for one answer.
    await reply
      .headers({ ...this.headers(nonce, audience), 'content-type': 'text/html; charset=utf-8' })
      .send(html);
  }

  /**
   * Answers with an asset. Its name has the hash of its content, so browsers cache it forever. They get the smallest file that the
   * build has packed and they can unpack.
   */
  async sendAsset(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const [path = ''] = (request.raw.url ?? '').split('?', 1);
    // Loaded with the first asset: most processes never serve one.
    const { send } = await import('@fastify/send');
    const options = { root: join(BUILT, 'assets'), dotfiles: 'deny', index: false, maxAge: YEAR_MS } as const;
    const name = path.slice(ASSETS.length - 1);
    const open = (file: string) => send(request.raw, file, { ...options, immutable: true });
    const packing = packingOf(name, request.headers['accept-encoding']);
    const packed = packing && (await open(name + packing.ending));
    const file = packed && packed.type !== 'error' ? packed : await open(name);
    if (file.type !== 'file') {
      file.stream.destroy();
      sendPlainError(reply, 404, 'there is no such file: load the page of the console again');
      return;
    }
    vary(reply, 'Accept-Encoding');
    reply.status(file.statusCode).headers(file.headers);
    if (packing && file === packed) {
      reply.headers({ 'content-encoding': packing.encoding, 'content-type': typeOf(name) });
    }
    await reply.send(file.stream);
  }

  /** Headers of the page: it loads only files of this server, and no page may frame it. */
  private headers(nonce: string, audience: ConsoleAudience) {
    const { consoleOidcIssuer: issuer, consoleOidcOrigins: origins } = this.environment;
    // Operators sign in with their tokens alone.
    const isOidc = issuer !== undefined && audience === 'tenants';
    const provider = isOidc ? [new URL(issuer).origin, ...origins] : [];
    const policy = [
      "default-src 'none'",
      "script-src 'self'",
      // The kit writes its theme into style elements.
      `style-src 'self' 'nonce-${nonce}'`,
      "font-src 'self'",
      // Images of artifacts are made of their bytes. None is fetched from elsewhere.
      "img-src 'self' blob: data:",
      `connect-src ${["'self'", ...provider].join(' ')}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ];
    return {
      'content-security-policy': policy.join('; '),
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
      'x-frame-options': 'DENY',
    };
  }
}

/** What the build packs files with (`apps/console/build.mjs`), the smallest first, and how their names end. */
const PACKINGS = [
  { encoding: 'br', ending: '.br', accepted: /\bbr\b/ },
  { encoding: 'gzip', ending: '.gz', accepted: /\bgzip\b/ },
] as const;

/** How an asset is packed for a browser that accepts these encodings. Undefined: not at all. */
const packingOf = (name: string, accepts = '') =>
  /\.(js|css|svg)$/.test(name) ? PACKINGS.find(({ accepted }) => accepted.test(accepts)) : undefined;

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

const typeOf = (name: string): string =>
  TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
