export { type PostgresOptions, type RunningPostgres, startPostgres } from './postgres.js';
export { findRedisBinary, type RunningRedis, startRedis } from './redis.js';
