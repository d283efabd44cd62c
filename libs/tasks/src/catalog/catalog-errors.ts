import { type AgentDefinition, ProtocolError } from '@baton/a2a';
import { assertConfig } from '@baton/agents';
import { CatalogFullError, NameTakenError } from '@baton/database';

/** Throws `invalid-params` unless a runtime can run the definition from a catalog. */
export function assertRunnable(definition: AgentDefinition): void {
  // The catalog holds no code: see ExecutorRuntime.
  if (definition.runtime === 'executor') {
    throw ProtocolError.invalidParams(
      'runtime',
      'an executor brings code, so it is not created here: put its folder into BATON_AGENTS_DIR of the workers',
    );
  }
  assertConfig(definition);
}

/** Of an agent that exists already. */
export const slugTaken = (slug: string): ProtocolError =>
  new ProtocolError(
    'conflict',
    `there is an agent "${slug}" already: choose another slug, or change that one`,
    {
      metadata: { agent: slug },
    },
  );

/** What the caller of a write is told of the store's refusals. */
export const explainRefusal =
  (slug: string) =>
  (error: unknown): never => {
    if (error instanceof NameTakenError) throw slugTaken(slug);
    if (error instanceof CatalogFullError) {
      throw new ProtocolError('conflict', `${error.message}: delete some that are not needed any more`);
    }
    throw error;
  };

/** The slug is in the URLs that callers know. */
export const slugFixed = (slug: string): ProtocolError =>
  ProtocolError.invalidParams(
    'slug',
    `the agent's is "${slug}" and stays so: create another agent for another slug`,
  );

export const isDefaultAgent = (slug: string, tenant: string): ProtocolError =>
  new ProtocolError(
    'conflict',
    `"${slug}" is the default agent of tenant "${tenant}": set another first, npx baton tenants set ${tenant} --default-agent index`,
  );

/** Others wrote it again and again in between. */
export const outrun = (name: string): ProtocolError =>
  new ProtocolError('conflict', `"${name}" is being changed by others at this moment: try again`);
