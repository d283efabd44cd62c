import type { Statement } from '../connection/database.js';

export interface TakenRoomRow {
  taken: boolean;
  /** Whether a count has begun: until it has ended, there is room. */
  counted: boolean;
}

const ALL_BYTES = '(SELECT sum(b) FROM unnest($2::bigint[]) AS b)::bigint';

/** Takes room for what these tasks store, if there is room for all of them: $1 tenant $2 bytes of each $3 most $4 tasks */
export const TAKE_ROOM: Statement = {
  name: 'usage-take-room-4',
  text: `
WITH taken AS (
  UPDATE tenant_usage u SET stored_bytes = u.stored_bytes + ${ALL_BYTES},
    counting_bytes = u.counting_bytes + coalesce((
      SELECT sum(t.bytes) FROM unnest($2::bigint[], $4::uuid[]) AS t(bytes, task) WHERE t.task <= u.counting_after
    ), 0)::bigint
  WHERE tenant_id = $1 AND (NOT is_counted OR stored_bytes + coalesce(catalog_bytes, 0) + ${ALL_BYTES} <= $3::bigint)
  RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) AS taken, EXISTS (SELECT FROM tenant_usage WHERE tenant_id = $1) AS counted`,
};
