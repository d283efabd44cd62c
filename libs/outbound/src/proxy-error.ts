/** The proxy of the operator did not open a tunnel. The message is for the operator, without credentials. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  /** For `failureReason`, which shows a tenant neither the address nor the answer of the proxy. */
  readonly code = 'ERR_OUTBOUND_PROXY';
}
