import { IssuerStore } from '@baton/database';
import { Messaging, TenantCache } from '@baton/messaging';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PublicUrl } from '../http/public-url.js';
import type { CallRequest } from '../http/requests.js';
import { HostBindings } from './host-bindings.js';

/** A changed list shows everywhere within this time, even if the control message is lost. */
const CACHE_MS = 5_000;
/** Cache key of an installation with a single tenant. */
const ONLY_TENANT = '';

/** The metadata of a resource that OAuth protects (RFC 9728 §2). */
interface ProtectedResource {
  resource: string;
  authorization_servers: readonly string[];
  bearer_methods_supported: ['header'];
  resource_name: 'Baton';
}

/**
 * Where a client without a token can sign in: the issuers that a tenant trusts. The tenant is that of the host, or the only one of
 * the installation. Elsewhere a request without a token names no tenant, and no issuer is named: the issuers of all tenants would
 * disclose the tenants.
 */
@Injectable()
export class AuthorizationServers implements OnModuleInit, OnApplicationShutdown {
  private readonly cache: TenantCache<string[]>;

  constructor(
    issuers: IssuerStore,
    messaging: Messaging,
    private readonly hosts: HostBindings,
    private readonly publicUrl: PublicUrl,
  ) {
    this.cache = new TenantCache(messaging, {
      load: (tenantId) => issuers.urls(tenantId === ONLY_TENANT ? undefined : tenantId),
      ttlMs: CACHE_MS,
      staleAfter: ({ type }) => (type === 'issuers-changed' ? 'all' : 'none'),
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  onApplicationShutdown(): void {
    this.cache.stop();
  }

  /** The metadata of the resource at that path. Undefined: the tenant trusts no issuer. */
  async metadata(path: string, request: CallRequest): Promise<ProtectedResource | undefined> {
    const { origin, tenantId } = await this.resolveHost(request);
    const servers = (await this.cache.get(tenantId)) ?? [];
    if (servers.length === 0) return undefined;
    return {
      resource: origin + path,
      authorization_servers: servers,
      bearer_methods_supported: ['header'],
      resource_name: 'Baton',
    };
  }

  /** The parameter `resource_metadata` of `WWW-Authenticate`: the URL of the metadata (RFC 9728 §5.1). Empty: there are none. */
  async challenge(request: FastifyRequest): Promise<string> {
    const [path = ''] = request.url.split('?', 1);
    const metadata = await this.metadata(path, request);
    if (!metadata) return '';
    const { origin } = await this.resolveHost(request);
    return `, resource_metadata="${origin}/.well-known/oauth-protected-resource${path}"`;
  }

  /** The origin that the client sees, and the tenant of its host. */
  private async resolveHost(request: CallRequest): Promise<{ origin: string; tenantId: string }> {
    const shared = this.publicUrl.urlFor(request);
    const binding = await this.hosts.find(request);
    if (!binding) return { origin: shared, tenantId: ONLY_TENANT };
    const origin = `${new URL(shared).protocol}//${request.headers.host ?? binding.host}`;
    return { origin, tenantId: binding.tenantId };
  }
}
