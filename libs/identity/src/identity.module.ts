import { OutboundModule } from '@baton/outbound';
import { Global, Module } from '@nestjs/common';
import { AuditLog } from './audit-log.js';
import { JwtService } from './issuers/jwt.service.js';
import { OpenCalls } from './open-calls.js';
import { OperatorTokens } from './operator-tokens.js';
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
