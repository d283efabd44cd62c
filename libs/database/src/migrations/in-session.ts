import { Client, type ClientConfig } from 'pg';
import { plainError } from '../connection/transient.js';

/** Runs `work` in a session of its own, and ends it. Its errors show no SQL of ours. */
export async function inSession<T>(config: ClientConfig, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ ...config, application_name: 'baton-migrate' });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    throw plainError(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}
