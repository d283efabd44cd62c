import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import type { CallRequest } from './requests.js';

/** A name or an address, with or without a port. */
const HOST = /^(?:\[[\da-f:.]{2,45}\]|[\w-]{1,63}(?:\.[\w-]{1,63}){0,20}\.?)(?::\d{1,5})?$/i;
/** A name has at most 253 characters, and a port five. */
const MAX_HOST_LENGTH = 260;
const SCHEMES: ReadonlySet<string> = new Set(['http', 'https']);
/** Names of the machine itself. */
const OWN_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

type AskedOrigin = Pick<CallRequest, 'host' | 'protocol' | 'socket' | 'isGrpc'>;

/**
 * The URL at which callers reach this server. Cards contain it. Without PUBLIC_URL it is the origin of the request, because some
 * clients demand that a card names the origin that it came from. A gRPC call has only the name of the host: the port is that of HTTP
 * on this server. A PUBLIC_URL of `localhost` counts as none: it is the default, also in `docker compose`, and wrong for most callers.
 */
@Injectable()
export class PublicUrl {
  private url: string;
  private readonly isSet: boolean;
  private readonly signs: boolean;
  private readonly listsGrpc: boolean;
  private readonly grpcAddress: string | undefined;
  private grpcPort: number | undefined;

  constructor({ publicUrl, cardSigningKey, grpcPort, grpcPublicAddress }: Environment) {
    this.url = publicUrl;
    this.isSet = new URL(publicUrl).hostname !== 'localhost' || this.path !== '';
    this.signs = cardSigningKey !== undefined;
    const isNamed = grpcPort !== undefined && grpcPublicAddress !== undefined;
    this.listsGrpc = isNamed;
    this.grpcPort = isNamed ? Number(grpcPublicAddress.split(':').at(-1)) : grpcPort;
    this.grpcAddress = isNamed && !grpcPublicAddress.startsWith('localhost:') ? grpcPublicAddress : undefined;
  }

  /** The URL for all callers, without a slash at the end. */
  get value(): string {
    return this.url;
  }

  /** Its path without a slash at the end: empty, or such as `/baton` where a proxy has Baton below a path and strips it. */
  get path(): string {
    return new URL(this.url).pathname.replace(/\/+$/, '');
  }

  /**
   * The URL for this caller, without a slash at the end. A request can name any host: only the answer to this request may depend on
   * it (`isShared`). A signed card can travel further than the answer, so it names only a host that is certainly this machine.
   */
  urlFor(request: AskedOrigin): string {
    if (this.isSet) return this.url;
    const origin = originOf(request);
    if (!origin || (this.signs && !isOwn(origin, request.isGrpc ? this.grpcPort : request.socket.localPort)))
      return this.url;
    if (!request.isGrpc) return origin.origin;
    const beside = new URL(this.url);
    beside.hostname = origin.hostname;
    return beside.origin;
  }

  /** Whether a shared cache may serve the answer for this caller to others. */
  isShared(request: AskedOrigin): boolean {
    return this.urlFor(request) === this.url;
  }

  /**
   * Name and port of the gRPC port as cards list it for this caller. Undefined without GRPC_PUBLIC_ADDRESS: Google ADK refuses
   * a card with an address that is not http(s) or has another origin than the card (wire contract P-20).
   */
  grpcOf(request: AskedOrigin): string | undefined {
    return this.grpcAddress ?? this.grpcAt(this.urlFor(request));
  }

  /** The address of gRPC at the host of another URL of this server. */
  grpcAt(url: string): string | undefined {
    if (!this.listsGrpc) return undefined;
    return `${new URL(url).hostname}:${String(this.grpcPort)}`;
  }

  /** Call it when the ports are open: with `PORT=0` they are known only then. A configured URL stays. */
  listening(port: number, grpcPort?: number): void {
    if (this.grpcPort === 0) this.grpcPort = grpcPort;
    const url = new URL(this.url);
    if (url.port !== '0') return;
    url.port = String(port);
    this.url = url.origin;
  }
}

/** Fastify has the headers of proxies in `host` and `protocol`, if they are trusted (TRUSTED_PROXIES). */
function originOf({ host, protocol }: AskedOrigin): URL | undefined {
  if (host.length > MAX_HOST_LENGTH || !HOST.test(host) || !SCHEMES.has(protocol)) return undefined;
  return URL.parse(`${protocol}://${host}`) ?? undefined;
}

/** Whether the origin is the port of this machine that the caller is connected to. */
function isOwn({ protocol, hostname, port }: URL, localPort: number | undefined): boolean {
  const ownPort = port || (protocol === 'https:' ? '443' : '80');
  return OWN_NAMES.has(hostname) && ownPort === String(localPort);
}
