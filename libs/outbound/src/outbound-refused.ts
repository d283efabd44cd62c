/** The platform refuses to call an address. The message is for the tenant who wrote the address. */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused';
}
