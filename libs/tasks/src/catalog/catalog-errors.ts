import { type AgentDefinition, type NextVersion, ProtocolError } from '@baton/a2a';
import { assertConfig } from '@baton/agents';
import { COMMAND_LINE } from '@baton/config';
import { NameTakenError } from '@baton/database';
import { explainLimit } from '@baton/identity';

/** Throws `invalid-params` unless a runtime can run the definition from a catalog. */
export function assertRunnable(definition: AgentDefinition): void {
  // The catalog holds no code: see ExecutorRuntime.
  if (definition.runtime === 'executor') {
    throw ProtocolError.invalidParams(
      'runtime',
      'agents in code cannot be created here: put the folder of the agent into BATON_AGENTS_DIR of the workers',
    );
  }
  if (definition.runtime === 'llm' && 'functions' in definition.config) {
    throw ProtocolError.invalidParams(
      'config.functions',
      'is for agents in BATON_AGENTS_DIR of the workers: agents that are created here have no code',
    );
  }
  assertConfig(definition);
}

/** The error for a slug that another agent has. */
export const slugTakenError = (slug: string): ProtocolError =>
  new ProtocolError(
    'conflict',
    `there is an agent "${slug}" already: choose another slug, or change that agent`,
    {
      metadata: { agent: slug },
    },
  );

/** The errors for a write that the store refuses. */
export const explainRefusal =
  (slug: string) =>
  (error: unknown): never => {
    if (error instanceof NameTakenError) throw slugTakenError(slug);
    return explainLimit(error);
  };

/** The slug is in the URLs of callers. */
export const slugFixedError = (slug: string): ProtocolError =>
  ProtocolError.invalidParams(
    'slug',
    `is "${slug}" and cannot change: create another agent for another slug`,
  );

export const defaultAgentError = (slug: string, tenant: string): ProtocolError =>
  new ProtocolError(
    'conflict',
    `"${slug}" is the default agent of tenant "${tenant}": set another first, ${COMMAND_LINE} tenants set ${tenant} --default-agent index`,
  );

/** Other writers were always faster. */
export const concurrentChangeError = (name: string): ProtocolError =>
  new ProtocolError('conflict', `"${name}" is being changed by another request: try again`);

export const versionErasedError = (name: string, version: number): ProtocolError =>
  new ProtocolError('conflict', `version ${version} of "${name}" was erased: its contents no longer exist`);

export const presentVersionError = (name: string, version: number): ProtocolError =>
  new ProtocolError(
    'conflict',
    `version ${version} is the present version of "${name}": change the agent first, then erase this version`,
  );

export const stableVersionError = (name: string, version: number): ProtocolError =>
  new ProtocolError(
    'conflict',
    `version ${version} is the stable version of "${name}": name another for "next"`,
  );

export const noNextError = (name: string): ProtocolError =>
  new ProtocolError('conflict', `no version of "${name}" has the label "next": give it to one first`);

/** @param has the version with the label. Unset: none has it @param named null: none should have it */
export const otherNextError = (name: string, has: number | undefined, named: number | null): ProtocolError =>
  new ProtocolError(
    'conflict',
    `${has === undefined ? 'no version' : `version ${has}`} of "${name}" has the label "next"${
      named === null ? '' : `, not version ${named}`
    }: read the agent again`,
  );

/** @param share of the version with the label. Unset: it has lost the label by itself */
export const otherShareError = (name: string, version: number, share: number | undefined): ProtocolError =>
  new ProtocolError(
    'conflict',
    `version ${version} of "${name}" has ${share === undefined ? 'lost the label "next"' : `${share} % of new tasks`} now: read the agent again`,
  );

/** Why a version with the label `next` must not lose it. Undefined: it may. */
export function labelRefusal(
  name: string,
  next: NextVersion | undefined,
  {
    share,
    version,
    replaces,
  }: { share: number; version?: number | undefined; replaces?: number | null | undefined },
): ProtocolError | undefined {
  if (replaces !== undefined) {
    return (next?.version ?? null) === replaces ? undefined : otherNextError(name, next?.version, replaces);
  }
  if (share > 0 || !next || next.share === 0 || next.version === version) return undefined;
  return new ProtocolError(
    'conflict',
    `version ${next.version} of "${name}" has the label "next" and ${next.share} % of new tasks: withdraw it first, or name it in \`replaces\``,
  );
}
