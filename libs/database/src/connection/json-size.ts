/** From here on Postgres compresses a value; it is then not known how large it is without reading it. */
const PLAIN_BYTES = 2000;
/** How much smaller such a value is taken to be. */
const COMPRESSION = 8;

/** SQL: about how large a JSON column is, without reading it. */
export const estimateOf = (column: string): string => `CASE WHEN pg_column_size(${column}) < ${PLAIN_BYTES}
    THEN pg_column_size(${column}) ELSE ${COMPRESSION} * pg_column_size(${column}) END`;
