/** Reads the secrets of tenants: model keys, credentials. Bound by the process that runs agents. */
export abstract class SecretReader {
  /** The value, for use and never for showing; undefined if the tenant has no such secret. */
  abstract get(tenantId: string, name: string): Promise<string | undefined>;
}
