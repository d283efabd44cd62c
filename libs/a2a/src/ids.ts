import { ProtocolError } from './protocol-error.js';

/** Slugs of the agents every installation has. */
const BUILT_IN_SLUGS: readonly string[] = ['echo', 'index'];
/** Segments beside or below agents' names in the paths of this server; they stay free for what may come. */
const RESERVED: readonly string[] = ['a2a', 'schema', 'versions'];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The slug of a tenant or an agent: a label of a host name. */
export const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Whether the text is a uuid as this server writes it, in lower case. Capitals name nothing: Postgres would find the row,
 * but the channels between processes have the other name.
 */
export const isUuid = (text: string): boolean => UUID.test(text);

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
  if (RESERVED.includes(slug)) {
    throw ProtocolError.invalidParams('slug', `"${slug}" is reserved: choose another`);
  }
  if (isUuid(slug)) {
    throw ProtocolError.invalidParams('slug', 'must not look like an id: choose a name');
  }
}

/** The slug that a name suggests: `Trip planner` becomes `trip-planner`. */
export const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9\s_-]/g, '')
    .replace(/[\s_-]+/g, '-')
    .slice(0, 63)
    .replace(/^-|-$/g, '');
