import { Redactor } from './outbound/redactor.js';
import type { SecretReader } from './ports.js';

/** The secrets of one turn. Remembers each value that the turn has read, so that it can be removed from texts. */
export class TurnSecrets {
  /** Removes the values that the turn has read so far. */
  redactor = new Redactor([]);
  private readonly values = new Set<string>();

  constructor(
    private readonly reader: SecretReader,
    private readonly tenantId: string,
  ) {}

  /**
   * A secret of the tenant without white space around it. It must never be shown. Undefined if there is no such secret.
   * Rejects with an Error whose message is for the tenant if one of the destinations may not receive it.
   * @param destinations every origin and program that will receive the value
   */
  async get(name: string, destinations: readonly string[]): Promise<string | undefined> {
    const value = (await this.reader.get(this.tenantId, name, destinations))?.trim();
    if (value === undefined || this.values.has(value)) return value;
    this.values.add(value);
    this.redactor = new Redactor(this.values);
    return value;
  }
}
