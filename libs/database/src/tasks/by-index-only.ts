import type { Statement } from '../connection/database.js';

/**
 * For the rest of the transaction, rows are found by an index and come in its order. The planner takes row-level
 * security for a condition that one row in a hundred meets, so it believes that what it finds is soon sorted, and
 * reads all of a tenant for one page.
 */
export const BY_INDEX_ONLY: Statement = {
  name: 'by-index-only',
  text: `SELECT ${[
    ...['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_hashjoin', 'enable_mergejoin'].map(
      (setting) => `set_config('${setting}', 'off', true)`,
    ),
    `set_config('max_parallel_workers_per_gather', '0', true)`,
  ].join(', ')}`,
};
