export * from './messaging.js';
export * from './messaging-unavailable-error.js';
export { createMessaging, type MessagingOptions } from './create-messaging.js';
export { inspectRedis, type RedisFacts } from './drivers/redis/inspect-redis.js';
export { MessagingModule } from './messaging.module.js';
export type { MessagingLog } from './quiet-log.js';
export { GroupedReads } from './grouped-reads.js';
export { type StaleEntries, TenantCache } from './tenant-cache.js';
