import { Metadata } from '@grpc/grpc-js';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type CallRequest, requestIdOf } from '../http/requests.js';

/**
 * The address of a caller: that of the peer, or if the peer is a trusted proxy the last one in `x-forwarded-for` that is not.
 * @param trusted whether an address is that of a proxy
 */
export function callerAddress(
  peer: string,
  forwardedFor: string | undefined,
  trusted: (address: string) => boolean,
): string {
  const addresses = [...(forwardedFor ?? '').split(',').map((each) => each.trim()), peer].filter(isIP);
  return addresses.findLast((address) => !trusted(address)) ?? addresses[0] ?? peer;
}

/** Where a call comes from. */
export interface CallOrigin {
  /** `/{service}/{rpc}`. */
  path: string;
  /** The host name that the caller asked for. */
  authority: string;
  /** Address of the peer. */
  peer: string;
  /** Whether an address is that of a trusted proxy. */
  isProxy: (address: string) => boolean;
  secure: boolean;
}

/** A gRPC call as the guard and the core see a request: its metadata are headers. */
export class GrpcRequest implements CallRequest {
  readonly id: string;
  readonly ip: string;
  readonly headers: IncomingHttpHeaders;
  readonly method = 'POST';
  readonly params = {};
  readonly query = {};
  readonly host: string;
  readonly protocol: string;
  readonly socket = {};
  readonly isGrpc = true;
  readonly routeOptions: { readonly url: string };

  constructor({ path, authority, peer, isProxy, secure }: CallOrigin, metadata: Metadata) {
    this.headers = headersOf(metadata, authority);
    this.host = authority;
    this.id = requestIdOf(this);
    const { 'x-forwarded-for': forwardedFor } = this.headers;
    this.ip = callerAddress(peer, forwardedFor as string | undefined, isProxy);
    this.protocol = secure ? 'https' : 'http';
    this.routeOptions = { url: path };
  }
}

/** Text metadata as headers. As Node does, the values of one key are joined. */
function headersOf(metadata: Metadata, host: string): IncomingHttpHeaders {
  const headers: Record<string, string> = {};
  for (const [key, values] of Object.entries(metadata.toJSON())) {
    const texts = values.filter((value) => typeof value === 'string');
    if (texts.length > 0) headers[key] = texts.join(', ');
  }
  return { ...headers, host };
}
