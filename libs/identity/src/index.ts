export { AuditLog } from './audit-log.js';
export { IdentityModule } from './identity.module.js';
export { SecretsModule } from './secrets.module.js';
export { LimitsModule } from './limits.module.js';
export { readIssuerKeys } from './issuers/read-issuer-keys.js';
export { IssuerError } from './issuers/issuer-error.js';
export { JwtService } from './issuers/jwt.service.js';
export { LimitsService } from './limits.service.js';
export { explainLimit } from './explain-limit.js';
export { OpenCalls } from './open-calls.js';
export {
  isJwt,
  type IssuedToken,
  MAX_TOKEN_AGENTS,
  MAX_TOKEN_REQUESTS_PER_SECOND,
  type NewToken,
  TokenService,
  type Verification,
} from './token.service.js';
export type { RefusedToken } from './token-state.js';
export { tokenState } from './token-state.js';
export { type Caller, callerOf } from './caller.js';
export { RefusedTokenError } from './refused-token-error.js';
export { OperatorTokens } from './operator-tokens.js';
export { OPERATOR_ROLES } from '@baton/database';
export { PushSecrets } from './push-secrets.js';
export { isSigningSecret, newSigningSecret, SIGNING_PREFIX, signingSecretProblem } from './signing-secret.js';
export { SecretBox } from './secret-box.js';
export { SecretError } from './secret-error.js';
export { Secrets } from './secrets.js';
export type { ApiToken, SecretInfo, TokenRights } from '@baton/database';
export { clientMetadata, clientUrlOf } from './oauth/client-metadata.js';
export { type ListedConnection, OAuthConnections } from './oauth/oauth-connections.js';
export { OAuthFailure } from './oauth/oauth-failure.js';
export { TokenExchanges } from './oauth/token-exchanges.js';
export { OAuthSignIns, SIGN_IN_PATH, type SignInFacts, signInUrl } from './oauth/oauth-sign-ins.js';
