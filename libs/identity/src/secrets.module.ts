import { Environment } from '@baton/config';
import { SecretStore } from '@baton/database';
import { OutboundModule } from '@baton/outbound';
import { Global, Module } from '@nestjs/common';
import { OAuthConnections } from './oauth/oauth-connections.js';
import { OAuthSignIns } from './oauth/oauth-sign-ins.js';
import { TokenExchanges } from './oauth/token-exchanges.js';
import { PushSecrets } from './push-secrets.js';
import { Secrets } from './secrets.js';

/** Provides Secrets, those of push configs, and the sign-ins at servers that agents call. */
@Global()
@Module({
  imports: [OutboundModule],
  providers: [
    {
      provide: Secrets,
      useFactory: (store: SecretStore, environment: Environment) => new Secrets(store, environment),
      inject: [SecretStore, Environment],
    },
    PushSecrets,
    OAuthConnections,
    OAuthSignIns,
    TokenExchanges,
  ],
  exports: [Secrets, PushSecrets, OAuthConnections, OAuthSignIns, TokenExchanges],
})
export class SecretsModule {}
