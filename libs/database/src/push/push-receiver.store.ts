import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { NOW } from './push-lease.js';

/** A receiver of push notifications of one tenant. */
export interface PushReceiver {
  tenantId: string;
  /** Host and port, such as `receiver.example:8443`. */
  host: string;
}

/** Whether a delivery to a receiver may be tried now. */
export interface ReceiverTurn {
  /** It has accepted a delivery before. */
  isConfirmed: boolean;
  /** Number of refused tries in a row. 0 = none is known. */
  failures: number;
  /** Time until it may be tried, in ms. 0 = now. */
  waitMs: number;
}

interface TurnRow {
  is_confirmed: boolean;
  failures: number;
  wait_ms: number;
  has_turn: boolean;
}

/** Claims the right to try a receiver, until it expires or is released. $1 tenant $2 host $3 ms */
const TAKE_TURN: Statement = {
  name: 'push-receiver-turn',
  text: `
WITH turn AS (
  UPDATE push_receivers SET next_at = ${NOW} + $3::int * interval '1 millisecond'
  WHERE tenant_id = $1 AND host = $2 AND answered_at IS NULL AND next_at <= ${NOW}
  RETURNING 1
)
SELECT r.answered_at IS NOT NULL AS is_confirmed, r.failures, EXISTS (SELECT FROM turn) AS has_turn,
  greatest(1, extract(epoch FROM r.next_at - ${NOW}) * 1000)::float8 AS wait_ms
FROM push_receivers r WHERE r.tenant_id = $1 AND r.host = $2`,
};

/** $1 tenant $2 host */
const CONFIRM: Statement = {
  name: 'push-receiver-confirm',
  text: `
INSERT INTO push_receivers (tenant_id, host, answered_at) VALUES ($1, $2, ${NOW})
ON CONFLICT (tenant_id, host) DO UPDATE SET answered_at = ${NOW}, failures = 0 WHERE push_receivers.answered_at IS NULL`,
};

/** $1 tenant $2 host $3 failures $4 pause in ms */
const REFUSE: Statement = {
  name: 'push-receiver-refuse',
  text: `
INSERT INTO push_receivers (tenant_id, host, failures, next_at) VALUES ($1, $2, $3::int, ${NOW} + $4::int * interval '1 millisecond')
ON CONFLICT (tenant_id, host) DO UPDATE SET failures = excluded.failures, next_at = excluded.next_at
WHERE push_receivers.answered_at IS NULL AND push_receivers.failures < excluded.failures`,
};

/**
 * Receivers that have never accepted a delivery of their tenant. All push configs of the tenant with such a receiver are tried like
 * one, so that a tenant cannot direct many requests at a server that refuses them
 * (docs/inside/adr/0053-receivers-that-never-answered.md).
 */
@Injectable()
export class PushReceiverStore {
  constructor(private readonly database: Database) {}

  /** @param holdMs how long no other config may try a receiver that has refused before */
  async takeTurn({ tenantId, host }: PushReceiver, holdMs: number): Promise<ReceiverTurn> {
    const [row] = await this.database.tenantQuery<TurnRow>(tenantId, TAKE_TURN, [tenantId, host, holdMs]);
    if (!row) return { isConfirmed: false, failures: 0, waitMs: 0 };
    const { is_confirmed: isConfirmed, failures, has_turn: hasTurn, wait_ms: waitMs } = row;
    return { isConfirmed, failures, waitMs: isConfirmed || hasTurn ? 0 : Math.ceil(waitMs) };
  }

  /** It has accepted a delivery: from now on each config is tried by itself. */
  async confirm({ tenantId, host }: PushReceiver): Promise<void> {
    await this.database.tenantQuery(tenantId, CONFIRM, [tenantId, host]);
  }

  /** It has refused a delivery. @param failures how many in a row, this one included @param pauseMs until the next */
  async refuse({ tenantId, host }: PushReceiver, failures: number, pauseMs: number): Promise<void> {
    await this.database.tenantQuery(tenantId, REFUSE, [tenantId, host, failures, pauseMs]);
  }
}
