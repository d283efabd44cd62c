import { Injectable } from '@nestjs/common';
import { Database, type Statement } from './database.js';

/** A worker process as it presents itself. */
export interface WorkerProcess {
  id: string;
  host: string;
  pid: number;
  /** Runs at a time. */
  concurrency: number;
}

/** $1 id $2 host $3 pid $4 concurrency */
const SEEN: Statement = {
  name: 'worker-seen',
  text: `
INSERT INTO workers (id, host, pid, concurrency) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()`,
};

/** $1 id */
const REMOVE: Statement = { name: 'worker-remove', text: 'DELETE FROM workers WHERE id = $1' };

const FORGET: Statement = {
  name: 'worker-forget',
  text: `DELETE FROM workers WHERE seen_at < now() - interval '1 hour'`,
};

/** The workers there are: their places are what tenants share. */
@Injectable()
export class WorkerStore {
  constructor(private readonly database: Database) {}

  /** A sign of life. */
  async seen({ id, host, pid, concurrency }: WorkerProcess): Promise<void> {
    await this.database.systemQuery(SEEN, [id, host, pid, concurrency]);
  }

  /** The worker takes no more runs. */
  async remove(id: string): Promise<void> {
    await this.database.systemQuery(REMOVE, [id]);
  }

  /** Forget the workers that died long ago. */
  async forgetDead(): Promise<void> {
    await this.database.systemQuery(FORGET, []);
  }
}
