import type { CallRecord, TurnRecords } from '@baton/agents';
import { Environment } from '@baton/config';
import { CallRecordStore, type RunKey } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';

/** Maximum bytes of a run that wait for its end. */
const MAX_RUN_BYTES = 2 * 1024 * 1024;
/** Maximum bytes of all runs of this worker. */
const MAX_ALL_BYTES = 64 * 1024 * 1024;

/** The records of an attempt. */
export interface RunCallRecords extends TurnRecords {
  /** The run is about to fail: stores what is held. Never rejects. */
  storeHeld(): Promise<void>;
  /** The attempt is over: forgets what is held. */
  discard(): void;
}

/**
 * Requests to the models of llm agents, and their answers. A record is stored with the entry of its call in the journal, or held in
 * memory until its run fails. Held ones are lost when the worker dies, and when the run waits for another agent or a time.
 */
@Injectable()
export class CallRecords {
  private heldBytes = 0;

  constructor(
    private readonly store: CallRecordStore,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /** The records of an attempt. */
  forRun({ tenantId, taskId, runId, attempt }: RunKey): RunCallRecords {
    const run = { tenantId, taskId, runId, attempt };
    let held: CallRecord[] = [];
    let bytes = 0;
    const add = (more: number): void => {
      bytes += more;
      this.heldBytes += more;
    };
    const discard = (): void => {
      held = [];
      add(-bytes);
    };
    return {
      byDefault: this.environment.recordDefault,
      hold: (record) => {
        held.push(record);
        add(sizeOf(record));
        // The newest ones are nearest to the failure.
        while (held.length > 0 && (bytes > MAX_RUN_BYTES || this.heldBytes > MAX_ALL_BYTES)) {
          const oldest = held.shift();
          if (oldest) add(-sizeOf(oldest));
        }
      },
      storeHeld: async () => {
        const records = held;
        discard();
        if (records.length > 0) await this.write(run, records);
      },
      discard,
    };
  }

  /** A turn does not fail because its calls cannot be recorded. */
  private async write(run: RunKey, records: readonly CallRecord[]): Promise<void> {
    await this.store.append(run, records).catch((err: unknown) => {
      const { tenantId, taskId, runId } = run;
      this.logger.warn('records of model calls could not be stored', { err, tenantId, taskId, runId });
    });
  }
}

/** JSON of mostly one byte a character. */
const sizeOf = ({ json }: CallRecord): number => json.length;
