import { defaultOrigins, mayReceive, originRefusal, parseOrigins, SECRET_NAME } from '@baton/a2a';
import { COMMAND_LINE, Environment } from '@baton/config';
import { type Actor, type PageAfter, type SecretInfo, type SecretKey, SecretStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { explainLimit } from './explain-limit.js';
import { SecretBox } from './secret-box.js';
import { SecretError } from './secret-error.js';

/** A private key or a file of credentials has some kilobytes. */
const MAX_VALUE_BYTES = 65_536;
/** Secrets of one batch of a rotation. */
const BATCH = 1_000;
/** Passes of a rotation over all secrets. Each reads those that were set during the one before. */
const MAX_PASSES = 5;

/** The result of a rotation. */
export interface Rotation {
  /** The key that now encrypts every secret, except the failed ones. */
  keyId: string;
  rotated: number;
  /** For each secret that could not be decrypted: the reason, for the operator. */
  failures: string[];
}

/** A tenant's secrets (keys of models, credentials of webhooks): encrypted at rest, never shown, never logged. */
@Injectable()
export class Secrets {
  private readonly box: SecretBox;

  constructor(
    private readonly store: SecretStore,
    environment: Pick<Environment, 'masterKey' | 'previousMasterKeys'>,
  ) {
    this.box = new SecretBox(environment);
  }

  /**
   * Set a secret. Replaces an existing one. Throws `SecretError` for an invalid name, value or origin, and ProtocolError
   * `limit-exceeded` if a limit of the tenant leaves no room for it.
   * @param origins the destinations that may receive it. Default: those of the replaced secret; for a new one its
   * provider's, if it has the name of a provider, else none
   */
  async set(
    tenantId: string,
    name: string,
    value: string,
    origins: readonly string[] | undefined,
    by: Actor,
  ): Promise<SecretInfo> {
    assertName(name);
    const bytes = Buffer.byteLength(value);
    if (bytes === 0 || bytes > MAX_VALUE_BYTES) {
      throw new SecretError(
        `The value of the secret "${name}" has ${bytes} bytes: give it 1 to ${MAX_VALUE_BYTES}.`,
        'value',
      );
    }
    const id = { tenantId, name };
    const own = origins && validOrigins(origins);
    return this.store.put(id, this.box.seal(id, value), own, defaultOrigins(name), by).catch(explainLimit);
  }

  /**
   * Set the destinations that may receive a secret.
   * @returns undefined if the tenant has no such secret. Throws `SecretError` for an invalid origin.
   */
  async setOrigins(
    tenantId: string,
    name: string,
    origins: readonly string[],
    by: Actor,
  ): Promise<SecretInfo | undefined> {
    const own = validOrigins(origins);
    if (!SECRET_NAME.test(name)) return undefined;
    return this.store.setOrigins({ tenantId, name }, own, by).catch(explainLimit);
  }

  /**
   * The value; undefined if the tenant has no such secret. Throws `SecretError` if it cannot be decrypted, or if one of
   * the destinations may not receive it.
   * @param destinations every origin and program that will receive the value
   */
  async get(tenantId: string, name: string, destinations: readonly string[]): Promise<string | undefined> {
    const id = { tenantId, name };
    const sealed = await this.store.find(id);
    if (!sealed) return undefined;
    const refused = destinations.find((destination) => !mayReceive(sealed.origins, destination));
    if (refused !== undefined) throw new SecretError(originRefusal(name, refused, COMMAND_LINE));
    return this.box.open(id, sealed);
  }

  /** By name, without the values. @param page unset = all */
  async list(tenantId: string, page?: PageAfter): Promise<SecretInfo[]> {
    return this.store.list(tenantId, page);
  }

  /** @returns whether there was such a secret */
  async remove(tenantId: string, name: string, by: Actor): Promise<boolean> {
    // Postgres has no text with U+0000; nothing else is a name that was ever taken.
    return SECRET_NAME.test(name) && this.store.remove({ tenantId, name }, by);
  }

  /**
   * Encrypt the secrets of all tenants that an earlier key has encrypted with the newest one. Safe while the platform runs: a
   * secret that is set meanwhile is not overwritten, and is read again. An interrupted rotation continues when it is started again.
   */
  async rotate(batch = BATCH): Promise<Rotation> {
    const { keyId } = this.box;
    const rotation: Rotation = { keyId, rotated: 0, failures: [] };
    // A process that still has only the old key may set a secret that this has passed.
    for (let pass = 1, isDone = false; !isDone; pass++) {
      isDone = true;
      rotation.failures = [];
      let rows = await this.store.listOutdated(keyId, batch);
      while (rows.length > 0) {
        for (const row of rows) {
          const outcome = await this.reseal(row);
          if (outcome === true) rotation.rotated += 1;
          if (outcome === false && pass === MAX_PASSES) rotation.failures.push(setAgain(row));
          if (typeof outcome === 'string') rotation.failures.push(outcome);
          else isDone = pass === MAX_PASSES;
        }
        rows = await this.store.listOutdated(keyId, batch, rows.at(-1));
      }
    }
    return rotation;
  }

  /** @returns whether it was encrypted again, or why it could not be decrypted */
  private async reseal(row: Awaited<ReturnType<SecretStore['listOutdated']>>[number]) {
    const id: SecretKey = { tenantId: row.tenantId, name: row.name };
    try {
      return await this.store.replace(id, row, this.box.seal(id, this.box.open(id, row)));
    } catch (error) {
      if (error instanceof SecretError) return `Tenant ${row.tenantId}: ${error.message}`;
      throw error;
    }
  }
}

const setAgain = ({ tenantId, name }: SecretKey): string =>
  `Tenant ${tenantId}: The secret "${name}" was set with an earlier key meanwhile: restart the processes with the new BATON_MASTER_KEY.`;

function validOrigins(texts: readonly string[]): string[] {
  const read = parseOrigins(texts);
  if ('origins' in read) return read.origins;
  throw new SecretError(`${read.field}: ${read.problem}`, read.field);
}

function assertName(name: string): void {
  if (SECRET_NAME.test(name)) return;
  throw new SecretError(
    'The name of the secret is not valid: use 1 to 128 letters, digits, dots, hyphens or underscores, beginning with a letter or digit.',
    'name',
  );
}
