import { Global, Module } from '@nestjs/common';
import { Environment } from '@baton/config';
import { SecretStore } from '@baton/database';
import { Secrets } from './secrets.js';

/** Provides Secrets, for the API and for workers. Expects the stores to be provided globally. */
@Global()
@Module({
  providers: [
    {
      provide: Secrets,
      useFactory: (store: SecretStore, environment: Environment) => new Secrets(store, environment),
      inject: [SecretStore, Environment],
    },
  ],
  exports: [Secrets],
})
export class SecretsModule {}
