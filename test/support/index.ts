export { createDatabase, type TestDatabase } from './database.js';
export { createRedisUrl, DRIVERS, type PrivateRedis, startPrivateRedis } from './redis.js';
