export { ConfigModule } from './config.module.js';
export {
  EGRESS_PATTERN_REMEDY,
  type EgressPattern,
  MAX_EGRESS_PATTERNS,
  parseEgressPattern,
} from './egress-pattern.js';
export { Environment, loadEnvironment, loadLocalEnvironment, type LocalEnvironment } from './environment.js';
export { defaultLimitsOf } from './default-limits.js';
export {
  type EnvironmentSource,
  processEnvironment,
  secretFiles,
  withoutSecrets,
} from './environment-source.js';
export { COMMAND_LINE, withCommandLine } from './command-line.js';
export { EnvironmentError } from './environment-error.js';
export { type SettingsReport, settingsReport, unknownSettings } from './check-settings.js';
export { ensureKeyFile, type KeyName } from './key-file.js';
export {
  DEFAULT_LIMITS,
  LIMIT_NAMES,
  type LimitName,
  type LimitOverrides,
  type LimitRule,
  guestLimits,
  limitRule,
  NO_LIMITS,
  storedLimits,
  type TenantLimits,
} from './limits.js';
export { listenAddress, ownUrl } from './listen-address.js';
export { isManagementHost } from './management-host.js';
export { masterKeyId, type MasterKeyIds, masterKeyIdsOf } from './master-key.js';
export { costOf, microsOf, type ModelPrices, priceOf, roundedCost } from './model-cost.js';
export { formatMicros, MAX_AMOUNT, parseMicros } from './amounts.js';
export { parseRedisUrl, type RedisHost } from './redis-url.js';
export { isBatonSecret } from './settings.js';
export { type ModelPrice, RECORD_MODES, type RecordMode } from './values.js';
