export { AuditLog } from './audit-log.js';
export { IdentityModule, LimitsModule, SecretsModule } from './identity.module.js';
export { IssuerError, readIssuerKeys } from './issuers/issuer-keys.js';
export { JwtService } from './issuers/jwt.service.js';
export { explainLimit, LimitsService } from './limits.service.js';
export { OpenCalls } from './open-calls.js';
export {
  type Caller,
  callerOf,
  isJwt,
  type IssuedToken,
  MAX_TOKEN_AGENTS,
  MAX_TOKEN_REQUESTS_PER_SECOND,
  type NewToken,
  type RefusedToken,
  RefusedTokenError,
  TokenService,
  tokenState,
  type Verification,
} from './token.service.js';
export { OperatorTokens } from './operator-tokens.js';
export { newSigningSecret, PushSecrets, SIGNING_PREFIX } from './push-secrets.js';
export { SecretBox, SecretError } from './secret-box.js';
export { Secrets } from './secrets.js';
export type { ApiToken, SecretInfo, TokenRights } from '@baton/database';
