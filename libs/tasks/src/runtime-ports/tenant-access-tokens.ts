import { type AccessTokenRequest, AccessTokens } from '@baton/agents';
import { oauthResource } from '@baton/a2a';
import { type OAuthConnectionKey, retryTransient } from '@baton/database';
import { OAuthConnections } from '@baton/identity';
import { Injectable } from '@nestjs/common';

/** How long a run waits for Postgres to give it a token. */
const READ_TOKEN_MS = 60_000;

/** The sign-ins of tenants, for runs. An outage of Postgres does not fail a task that needs one. */
@Injectable()
export class TenantAccessTokens extends AccessTokens {
  constructor(private readonly connections: OAuthConnections) {
    super();
  }

  override get(tenantId: string, request: AccessTokenRequest, refused?: string): Promise<string | undefined> {
    return retryTransient(() => this.connections.token(keyOf(tenantId, request), refused), {
      signal: AbortSignal.timeout(READ_TOKEN_MS),
    });
  }

  override refuse(tenantId: string, request: AccessTokenRequest, refused: string): Promise<void> {
    return retryTransient(() => this.connections.refuse(keyOf(tenantId, request), refused), {
      signal: AbortSignal.timeout(READ_TOKEN_MS),
    });
  }
}

const keyOf = (tenantId: string, { url }: AccessTokenRequest): OAuthConnectionKey => ({
  tenantId,
  resource: oauthResource(url),
  caller: null,
});
