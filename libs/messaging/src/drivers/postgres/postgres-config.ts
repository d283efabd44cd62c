import type { PostgresPoolConfig } from 'bullmq';

/** The connection options of every connection of this driver. */
export function poolConfig(databaseUrl: string): PostgresPoolConfig {
  const url = new URL(databaseUrl);
  // An `options` of the URL would win over ours, and BullMQ's tables would not be found.
  const options = url.searchParams.get('options');
  url.searchParams.delete('options');
  return {
    connectionString: url.toString(),
    schema: 'bullmq',
    max: 5,
    connectionTimeoutMillis: 1_500,
    keepAlive: true,
    application_name: 'baton-messaging',
    // BullMQ listens to the errors of idle connections only: one that breaks while it is in use would end the
    // process. Whoever uses it gets the error all the same.
    onConnect: (client: { on(event: 'error', listener: () => void): unknown }) => {
      client.on('error', () => undefined);
    },
    // Nothing here has to survive a crash of the server (runs are enqueued again from their rows), so no
    // commit waits for the disk.
    options: [options, '-c synchronous_commit=off'].filter(Boolean).join(' '),
  };
}

/** Where the server is, without user or password. */
export function addressOf(databaseUrl: string): string {
  const { hostname, port, searchParams } = new URL(databaseUrl);
  return `${hostname || searchParams.get('host') || 'localhost'}:${port || 5432}`;
}
