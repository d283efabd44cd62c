export { BearerGuard } from './bearer.guard.js';
export { type Caller, callerOf } from './caller.js';
export { IdentityModule } from './identity.module.js';
export { LIMIT_NAMES, LIMITS, type LimitName, type LimitRule } from './limit-list.js';
export { LimitsModule } from './limits.module.js';
export { LimitsService, type TenantLimits } from './limits.service.js';
export { type NewToken, type RefusedToken, TokenService, type Verification } from './token.service.js';
export { SecretError } from './secret-box.js';
export { Secrets } from './secrets.js';
