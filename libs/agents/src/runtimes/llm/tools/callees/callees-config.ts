import { SLUG } from '@baton/a2a';
import { z } from 'zod';

const MAX_CALLEES = 100;

const slug = z.string('must be the slug of an agent').regex(SLUG, 'must be the slug of an agent');

const callee = z.union(
  [
    slug.transform((agent) => ({ agent, description: undefined })),
    z.strictObject({ agent: slug, description: z.string().trim().min(1).max(2000).optional() }),
  ],
  'must be the slug of an agent, or {agent, description}',
);

const whole = (max: number) => {
  const allowed = `must be a whole number from 1 to ${max}`;
  return z.int(allowed).min(1, allowed).max(max, allowed).optional();
};

/** The agents of the tenant that an agent may hand tasks to; `all` = every one that callers can see. */
export const callees = z.union(
  [z.literal('all'), z.array(callee).max(MAX_CALLEES, `must have at most ${MAX_CALLEES} agents`)],
  'must be "all" or a list of slugs, or of {agent, description}',
);

/** May be stricter than the operator's DELEGATION_DEPTH and DELEGATION_TASKS, never wider. */
export const delegation = z.strictObject({
  /** How often a task may be handed on, from the first one of all. */
  depth: whole(100),
  /** Most tasks below the first one of all. */
  tasks: whole(10_000),
});

export type Callees = z.output<typeof callees>;
