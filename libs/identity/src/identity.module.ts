import { Environment } from '@baton/config';
import { SecretStore } from '@baton/database';
import { OutboundModule } from '@baton/outbound';
import { Global, Module } from '@nestjs/common';
import { AuditLog } from './audit-log.js';
import { JwtService } from './issuers/jwt.service.js';
import { LimitsService } from './limits.service.js';
import { OpenCalls } from './open-calls.js';
import { OperatorTokens } from './operator-tokens.js';
import { PushSecrets } from './push-secrets.js';
import { Secrets } from './secrets.js';
import { TokenService } from './token.service.js';

// Each expects the stores and Messaging to be provided globally. A worker needs no tokens.

/** Provides TokenService, JwtService, OpenCalls, AuditLog and OperatorTokens. */
@Global()
@Module({
  imports: [OutboundModule],
  providers: [TokenService, JwtService, OpenCalls, AuditLog, OperatorTokens],
  exports: [TokenService, JwtService, OpenCalls, AuditLog, OperatorTokens],
})
export class IdentityModule {}

/** Provides LimitsService. */
@Global()
@Module({ providers: [LimitsService], exports: [LimitsService] })
export class LimitsModule {}

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
