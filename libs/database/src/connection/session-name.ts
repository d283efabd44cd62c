import type { ClientBase } from 'pg';

/** Unique among the sessions of a server: a process id is used again, with a later start. */
const NAME = `pid::text || '/' || extract(epoch FROM backend_start)::text`;

const OWN = `SELECT pid, ${NAME} AS name FROM pg_stat_activity WHERE pid = pg_backend_pid()`;

/**
 * The name of this session at Postgres. Undefined behind a pooler, which gives its clients process ids of its own: the end of this
 * connection is then not the end of a session.
 */
export async function sessionName(client: ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{ pid: number; name: string }>(OWN);
  const { processID } = client as ClientBase & { processID: number | null };
  return rows.find(({ pid }) => pid === processID)?.name;
}

/**
 * SQL: whether a session has ended. False for NULL. A session of another role counts as alive as long as any has its process id:
 * Postgres hides its start.
 */
export const hasEnded = (session: string): string =>
  `(${session} IS NOT NULL AND NOT (ARRAY[${session}, split_part(${session}, '/', 1)] && ARRAY(
    SELECT coalesce(${NAME}, pid::text) FROM pg_stat_activity
  )))`;
