export { type GivenUp, PostgresClient, untilStatementEnded } from './postgres-client.js';
export { PostgresPool, type PostgresPoolConfig } from './postgres-pool.js';
export { runningTimeout } from './running-timeout.js';
export { connectionConfig, SESSION_SETTINGS, sessionConfig } from './session-settings.js';
export { SingleFlight } from './single-flight.js';
