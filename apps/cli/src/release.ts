/** The version of this build. */
export { releaseOf } from '@baton/database';
