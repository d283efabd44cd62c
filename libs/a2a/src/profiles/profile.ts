import type { Codec } from '../codec.js';
import { ProtocolError } from '../errors.js';
import type { ErrorOverrides } from '../rpc-error.js';

/** What one path promises: which families it speaks, which versions it takes, how its errors look. */
export interface Profile {
  readonly name: string;
  /** The codec of the family that has this JSON-RPC method, if any. */
  codecFor(method: string): Codec | undefined;
  /**
   * The version a request is served as, `major.minor`. `requested` is the `A2A-Version` header or query
   * parameter. Throws `version-not-supported` naming the supported ones.
   */
  resolveVersion(requested: string | undefined, method?: string): string;
  /** Where its errors differ from the specification's. */
  readonly errors: ErrorOverrides;
  /** Largest body it takes unless the operator sets another, in bytes. */
  readonly bodyLimitBytes: number;
}

/** `1`, `1.0` and `1.0.3` are all version 1.0: patch numbers don't matter (A2A 1.0 §3.6). */
export function parseVersion(requested: string): string | undefined {
  const match = /^(\d{1,4})(?:\.(\d{1,4}))?(?:\.\d{1,9})?$/.exec(requested.trim());
  return match ? `${Number(match[1])}.${Number(match[2] ?? 0)}` : undefined;
}

export function versionNotSupported(requested: string, supported: readonly string[]): ProtocolError {
  const shown = requested.slice(0, 32);
  const list = supported.join(', ');
  return new ProtocolError(
    'version-not-supported',
    `A2A version "${shown}" is not supported: ask for one of ${list}, or leave A2A-Version out`,
    { metadata: { requestedVersion: shown, supportedVersions: list } },
  );
}
