import { ProtocolError } from './errors.js';

/** Slugs of the agents every installation has. */
const BUILT_IN_SLUGS: readonly string[] = ['echo', 'index'];
const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Check the slug of a new agent; it becomes a segment of its URL. Throws `invalid-params`. */
export function assertAgentSlug(slug: string): void {
  if (!SLUG.test(slug)) {
    throw ProtocolError.invalidParams(
      'slug',
      'must be 1 to 63 lower-case letters, digits or hyphens, and neither begin nor end with a hyphen',
    );
  }
  if (BUILT_IN_SLUGS.includes(slug)) {
    throw ProtocolError.invalidParams('slug', `"${slug}" is the name of a built-in agent: choose another`);
  }
}
