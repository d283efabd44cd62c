import { Environment } from '@baton/config';
import { SecretStore } from '@baton/database';
import { Global, Module } from '@nestjs/common';
import { BearerStrategy } from './bearer.js';
import { LimitsService } from './limits.service.js';
import { OpenCalls } from './open-calls.js';
import { Secrets } from './secrets.js';
import { TokenService } from './token.service.js';

// Each expects the stores and Messaging to be provided globally. A worker needs no tokens.

/** Provides TokenService, OpenCalls, and what BearerGuard needs. */
@Global()
@Module({ providers: [TokenService, OpenCalls, BearerStrategy], exports: [TokenService, OpenCalls] })
export class IdentityModule {}

/** Provides LimitsService. */
@Global()
@Module({ providers: [LimitsService], exports: [LimitsService] })
export class LimitsModule {}

/** Provides Secrets. */
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
