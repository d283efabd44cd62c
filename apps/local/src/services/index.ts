export { freePort } from './free-port.js';
export { type RunningPostgres, startPostgres } from './postgres.js';
export { findRedisBinary, type RunningRedis, startRedis } from './redis.js';
export { waitUntil } from './wait.js';
