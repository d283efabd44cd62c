/** Rows of all tenants that are due. */
interface DueRows {
  table: string;
  /** Alias of the table in all SQL here. */
  alias: string;
  columns: string;
  /** SQL of the condition. It compares with `statement_timestamp()`: an index finds no rows by `clock_timestamp()`. */
  isDue: string;
  /** SQL of the time since which a row is due. */
  since: string;
  /** SQL of the maximum number of rows. */
  limit: string;
}

/**
 * SQL that selects and locks due rows: the oldest of each tenant, then the second of each, and so on. A tenant with thousands of due
 * rows delays no other. It reads all rows that are due. A row is left to the next sweep if another transaction
 * has locked it.
 */
export const takeInTurns = ({ table, alias, columns, isDue, since, limit }: DueRows): string => `
  SELECT ${columns} FROM (
    SELECT ${alias}.ctid AS place, row_number() OVER (PARTITION BY tenant_id ORDER BY ${since}) AS turn
    FROM ${table} ${alias} WHERE ${isDue} ORDER BY turn, ${since} LIMIT ${limit}
  ) due_row JOIN ${table} ${alias} ON ${alias}.ctid = due_row.place
  WHERE ${isDue} FOR UPDATE OF ${alias} SKIP LOCKED`;
