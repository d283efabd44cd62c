import { type ClientBase, type DatabaseError, escapeIdentifier } from 'pg';
import { DatabaseSetupError } from '../connection/database-setup-error.js';

const ABOUT = `SELECT current_user::text AS owner, datname::text AS database, pg_has_role(datdba, 'USAGE') AS "ownsDatabase"
  FROM pg_database WHERE datname = current_database()`;
const UNDEFINED_OBJECT = '42704';

/** The role that a URL signs in with; undefined if the URL leaves it to the environment. */
export const roleOf = (url: string): string | undefined =>
  decodeURIComponent(new URL(url).username) || undefined;

/**
 * Default privileges (docs/operating/security.md): the role of the processes may read and write all tables that the role of this session
 * creates from now on. Changes nothing if both are the same role. Throws DatabaseSetupError if the role does not exist.
 */
export async function grantDefaultPrivileges(session: ClientBase, role: string): Promise<void> {
  type About = { owner: string; database: string; ownsDatabase: boolean };
  const [about] = (await session.query<About>(ABOUT)).rows;
  if (!about || about.owner === role) return;
  const to = `TO ${escapeIdentifier(role)}`;
  const grants = [
    `ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES ${to}`,
    `ALTER DEFAULT PRIVILEGES GRANT USAGE, SELECT ON SEQUENCES ${to}`,
    // Without Redis, the queue makes tables in a schema of its own.
    ...(about.ownsDatabase ? [`GRANT CREATE ON DATABASE ${escapeIdentifier(about.database)} ${to}`] : []),
  ];
  try {
    for (const grant of grants) await session.query(grant);
  } catch (error) {
    if ((error as Partial<DatabaseError>).code !== UNDEFINED_OBJECT) throw error;
    throw new DatabaseSetupError(
      `The role "${role}" of DATABASE_URL does not exist: create it (docs/operating/security.md#the-role-of-database_url).`,
    );
  }
}
