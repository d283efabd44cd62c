/** Reads secrets of tenants, such as model keys. The worker binds it. */
export abstract class SecretReader {
  /**
   * The value, which must never be shown. Undefined if the tenant has no such secret. Rejects with an Error whose message
   * is for the tenant if one of the destinations may not receive it.
   * @param destinations every origin and program that will receive the value (`@baton/a2a`, secret-origins)
   */
  abstract get(tenantId: string, name: string, destinations: readonly string[]): Promise<string | undefined>;
}
