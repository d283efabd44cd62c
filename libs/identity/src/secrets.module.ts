import { Environment } from '@baton/config';
import { SecretStore } from '@baton/database';
import { Global, Module } from '@nestjs/common';
import { PushSecrets } from './push-secrets.js';
import { Secrets } from './secrets.js';

/** Provides Secrets, and those of push configs. */
@Global()
@Module({
  providers: [
    {
      provide: Secrets,
      useFactory: (store: SecretStore, environment: Environment) => new Secrets(store, environment),
      inject: [SecretStore, Environment],
    },
    PushSecrets,
  ],
  exports: [Secrets, PushSecrets],
})
export class SecretsModule {}
