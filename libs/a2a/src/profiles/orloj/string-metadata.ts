import type { Fields } from '../../codecs/fields.js';

/** Throws `invalid-params` if the params' metadata is not a map of strings. */
export function assertStringMetadata(params: Fields): void {
  const metadata = params.child('metadata');
  for (const name of Object.keys(params.object('metadata') ?? {})) metadata?.string(name);
}
