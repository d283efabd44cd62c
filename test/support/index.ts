export { createDatabase, type TestDatabase } from './database.js';
export {
  createRedisUrl,
  DRIVERS,
  type PrivateRedis,
  startPrivateRedis,
  startTlsRedis,
  type TlsRedis,
} from './redis.js';
