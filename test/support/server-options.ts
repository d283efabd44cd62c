/**
 * For servers of tests. Node.js closes a connection after five idle seconds. A caller that was too busy to notice would send on it,
 * fail, and send again: once more than the test counts.
 */
export const KEEPS_CONNECTIONS = { keepAliveTimeout: 15 * 60_000 };
