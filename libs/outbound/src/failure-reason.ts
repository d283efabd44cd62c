const REASONS: Record<string, string> = {
  ENOTFOUND: 'its name leads nowhere',
  EAI_AGAIN: 'its name could not be looked up',
  ECONNREFUSED: 'it refused the connection',
  ECONNRESET: 'it closed the connection',
  EPIPE: 'it closed the connection',
  UND_ERR_SOCKET: 'it closed the connection',
  EHOSTUNREACH: 'there is no way to it',
  ENETUNREACH: 'there is no way to it',
  ETIMEDOUT: 'it did not answer in time',
  UND_ERR_CONNECT_TIMEOUT: 'it did not answer in time',
  UND_ERR_HEADERS_TIMEOUT: 'it did not answer in time',
  UND_ERR_BODY_TIMEOUT: 'it stopped in the middle of its answer',
  ERR_OUTBOUND_PROXY: 'the proxy of this server opened no connection to it',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not one that is trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not one that is trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not one that is trusted',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

/**
 * Explains why a call of `Outbound.fetch` failed, without addresses: a clause about the host, or the whole sentence of
 * an OutboundRefused. Undefined if it is not a connection error.
 */
export function failureReason(error: unknown): string | undefined {
  const { name, code, message, cause, errors } = (error ?? {}) as Partial<AnyFailure>;
  if (name === 'OutboundRefused') return message;
  if (name === 'TimeoutError') return 'it did not answer in time';
  const reason = REASONS[code ?? ''];
  // With several addresses (happy eyeballs) there is one error per address.
  return reason ?? (cause === undefined ? errors && failureReason(errors[0]) : failureReason(cause));
}

interface AnyFailure extends Error {
  code: string;
  errors: unknown[];
}
