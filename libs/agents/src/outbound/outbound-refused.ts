/** The platform does not call this address. The message is meant for the tenant who wrote it. */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused';
}
