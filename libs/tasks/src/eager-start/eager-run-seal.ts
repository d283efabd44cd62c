import { Environment } from '@baton/config';
import type { EagerRun } from '@baton/messaging';
import { clock } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Authenticated beside the content, so that it stands for one run and one worker. */
type Addressed = Pick<EagerRun, 'tenantId' | 'taskId' | 'runId'>;

const SEALED = /^(\d{1,16})\.([\w-]{43})\.(.+)$/s;

/**
 * Proves to a worker that a process of this installation has sent it a run, and that the run is still the worker's: HMAC-SHA-256 with
 * `DATABASE_SYSTEM_KEY`, which such processes alone have. Redis can neither forge nor change it.
 */
@Injectable()
export class EagerRunSeal {
  // `#private`, so that printing a seal shows no key.
  readonly #key: Buffer | undefined;

  constructor(@Inject(Environment) { databaseSystemKey: key }: Pick<Environment, 'databaseSystemKey'>) {
    this.#key = key === undefined ? undefined : Buffer.from(key);
  }

  /**
   * @param json of the run; see `CreatedTask.claimed`
   * @param until when the worker may no longer begin, in ms since 1970
   * @returns undefined: this process has no key
   */
  seal(workerId: string, run: Addressed, json: string, until: number): string | undefined {
    if (!this.#key) return undefined;
    return `${until}.${proofOf(this.#key, workerId, run, until, json)}.${json}`;
  }

  /** The JSON of a run. Undefined: the seal is missing, forged, too old, or of another key, run or worker. */
  open(workerId: string, { sealed = '', ...run }: EagerRun): string | undefined {
    const [, until, proof, json] = SEALED.exec(sealed) ?? [];
    if (!this.#key || until === undefined || proof === undefined || json === undefined) return undefined;
    const expected = proofOf(this.#key, workerId, run, Number(until), json);
    if (!timingSafeEqual(Buffer.from(proof), Buffer.from(expected))) return undefined;
    return clock.now() < Number(until) ? json : undefined;
  }
}

const proofOf = (
  key: Buffer,
  workerId: string,
  { tenantId, taskId, runId }: Addressed,
  until: number,
  json: string,
): string =>
  createHmac('sha256', key)
    .update(`eager run ${workerId} ${tenantId} ${taskId} ${runId} ${until} ${json}`)
    .digest('base64url');
