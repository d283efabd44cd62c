import { type Agent, type AgentLabels, missingInCard, ProtocolError, writeAgentDefinition } from '@baton/a2a';
import { agentSchema } from '@baton/agents';
import { callerOf } from '@baton/identity';
import type {
  AgentSummary,
  AgentVersion,
  Author,
  CatalogEntry,
  CatalogWrite,
  OpenVersion,
  StoredLoadFailure,
  CatalogWriteOptions,
} from '@baton/tasks';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { flagQuery, wholeNumberQuery } from '../../openapi/query-pipe.js';
import { generatedSchemas, timeSchema } from '../../openapi/schemas.js';
import { nextCursor } from '../paging.js';

/** The document of an agent of a catalog. `parseAgentDocument` and the runtimes validate it by what this is made of. */
export const agentBody = z.record(z.string(), z.unknown()).register(generatedSchemas, {
  id: 'AgentDocument',
  generate: () => {
    const { $schema: _, properties, ...rest } = agentSchema();
    const { tenants: _tenants, ...own } = properties;
    return { ...rest, properties: own };
  },
});
/** A JSON merge patch (RFC 7396) of the document. The result is validated as a document. */
export const agentPatch = z.record(z.string(), z.unknown());

const definition = z
  .record(z.string(), z.unknown())
  .describe('As in the document, without what is the same when it is left out');

const nextVersion = z
  .object({
    version: z.int().describe('The version that has, or had, the label `next`'),
    share: z.int().describe('How many of 100 new tasks begin with it'),
    failures: z.int().describe('After how many failed runs it may lose its share by itself'),
    since: timeSchema,
  })
  .meta({ id: 'NextVersion' });
const endedNext = z
  .object({
    version: z.int(),
    share: z.int().describe('As it was'),
    at: timeSchema,
    runs: z.int().describe('How many of its runs had ended'),
    failed: z.int().describe('How many of them had failed'),
    stable_runs: z.int().describe('The same for runs of the stable version'),
    stable_failed: z.int(),
  })
  .meta({ id: 'EndedNextVersion' });
const agentSummary = z
  .object({
    id: z.string().optional().describe('Left out in a dry run that would create it'),
    slug: z.string(),
    origin: z.enum(['catalog', 'installed', 'builtin']),
    enabled: z.boolean(),
    version: z.int().nullable(),
    next: nextVersion.optional().describe('The version with the label `next`. Left out: none has it'),
    next_ended: endedNext
      .optional()
      .describe('Left out, unless a version has lost the label `next` because its runs failed'),
    name: z.string(),
    description: z.string(),
    runtime: z.string(),
  })
  .meta({ id: 'AgentSummary' });
const loadFailure = z
  .object({
    agent: z.string().nullable().describe('Slug; null: the folder of agents cannot be read'),
    file: z.string().describe('Path in `BATON_AGENTS_DIR`'),
    line: z.int().nullable(),
    reason: z.string(),
  })
  .meta({ id: 'LoadFailure' });
/** As operators see it. */
export const workerFailure = loadFailure
  .extend({ tenants: z.array(z.string()).nullable().describe('Null: every tenant; empty: not known') })
  .meta({ id: 'WorkerLoadFailure' });
export const agentList = z.object({
  agents: z.array(agentSummary),
  load_failures: z
    .array(loadFailure)
    .optional()
    .describe('Agents in code that workers could not load. On the first page, if there are any'),
  next_cursor: nextCursor,
});
export const agentAnswer = agentSummary
  .omit({ name: true, description: true, runtime: true })
  .extend({
    created_at: timeSchema.optional(),
    updated_at: timeSchema.optional(),
    definition,
    missing_secrets: z
      .array(
        z.object({
          name: z.string(),
          origins: z.array(z.string()).describe('Where the agent sends it: the secret must allow them'),
        }),
      )
      .optional()
      .describe(
        'Secrets that it needs and the tenant does not have: it fails until they are set. Left out: none',
      ),
  })
  .meta({ id: 'Agent' });
export const agentWrite = z
  .object({
    outcome: z.enum(['created', 'updated', 'unchanged']),
    dry_run: z.boolean(),
    agent: agentAnswer,
    warnings: z
      .array(
        z.object({
          field: z.string(),
          description: z.string(),
          agent: z.string().optional().describe('The agent that there is not'),
        }),
      )
      .optional()
      .describe('What is allowed and fails when the agent runs'),
    hints: z
      .array(z.object({ field: z.string(), description: z.string() }))
      .optional()
      .describe('What the card should have and the definition leaves out'),
    unchecked_tools: z
      .array(z.object({ field: z.string(), description: z.string() }))
      .optional()
      .describe(
        'With `checkTools`: the MCP servers that were not asked, and tools that the agent does not get',
      ),
  })
  .meta({ id: 'AgentWrite' });

const versionSummary = z
  .object({
    version: z.int(),
    enabled: z.boolean(),
    created_at: timeSchema,
    created_by: z.string(),
    erased_at: timeSchema.nullable(),
  })
  .meta({ id: 'AgentVersionSummary' });
export const versionList = z.object({ versions: z.array(versionSummary), next_cursor: nextCursor });
export const versionAnswer = versionSummary
  .extend({ definition: definition.nullable().describe('Null: it was erased') })
  .meta({ id: 'AgentVersion' });

type Shown = Omit<Agent, 'id'> & Partial<Pick<CatalogEntry, 'id' | 'createdAt' | 'updatedAt'>>;

/** @returns nothing if there are no failures */
export const encodeLoadFailures = (failures: readonly StoredLoadFailure[]) => ({
  ...(failures.length > 0 && { load_failures: failures.map((failure) => encodeLoadFailure(failure)) }),
});

const encodeLoadFailure = ({ slug, file, line, reason }: StoredLoadFailure): z.infer<typeof loadFailure> => ({
  agent: slug,
  file,
  line,
  reason,
});

/** As operators see it. */
export const encodeWorkerFailure = (failure: StoredLoadFailure): z.infer<typeof workerFailure> => ({
  ...encodeLoadFailure(failure),
  tenants: failure.tenants,
});

/** An agent in a list. */
export const encodeAgentSummary = (agent: AgentSummary): z.infer<typeof agentSummary> => {
  const { name, description, runtime } = agent;
  return { ...standingOf(agent), name, description, runtime };
};

/** An agent with its definition. Tenants do not see the settings of an operator's agent. */
export function encodeAgent(agent: Shown): z.infer<typeof agentAnswer> {
  const { config: _, ...shown } = writeAgentDefinition(agent.definition);
  return {
    ...standingOf(agent),
    created_at: agent.createdAt?.toISOString(),
    updated_at: agent.updatedAt?.toISOString(),
    definition: agent.origin === 'catalog' ? writeAgentDefinition(agent.definition) : shown,
  };
}

/** The secrets of these uses, with all places that receive them. */
export function encodeMissingSecrets(
  uses: readonly { secret: string; destinations: readonly string[] }[],
): Pick<z.infer<typeof agentAnswer>, 'missing_secrets'> {
  if (uses.length === 0) return {};
  const names = [...new Set(uses.map(({ secret }) => secret))];
  const originsOf = (name: string) => [
    ...new Set(uses.filter(({ secret }) => secret === name).flatMap(({ destinations }) => destinations)),
  ];
  return { missing_secrets: names.map((name) => ({ name, origins: originsOf(name) })) };
}

/** The outcome of a write or of a dry run. */
export const encodeWrite = (
  { outcome, entry }: CatalogWrite,
  dryRun: boolean,
  warnings: z.infer<typeof agentWrite>['warnings'] = [],
): z.infer<typeof agentWrite> => ({
  outcome,
  dry_run: dryRun,
  agent: encodeAgent(entry),
  ...(warnings.length > 0 && { warnings }),
  ...hintsOf(entry),
});

function hintsOf({ definition }: CatalogWrite['entry']): Pick<z.infer<typeof agentWrite>, 'hints'> {
  const hints = missingInCard(definition);
  return hints.length > 0 ? { hints } : {};
}

/** A version in a list. */
export const encodeVersionSummary = (version: AgentVersion): z.infer<typeof versionSummary> => ({
  version: version.version,
  enabled: version.enabled,
  created_at: version.createdAt.toISOString(),
  created_by: version.by,
  erased_at: version.erasedAt?.toISOString() ?? null,
});

/** A version with its definition, which is null if it was erased. */
export const encodeVersion = (version: AgentVersion): z.infer<typeof versionAnswer> => ({
  ...encodeVersionSummary(version),
  definition: version.erasedAt ? null : writeAgentDefinition(version.definition),
});

const standingOf = ({ id, slug, origin, version, status, labels }: Omit<Shown, 'definition'>) => ({
  id,
  slug,
  origin,
  enabled: status === undefined,
  version: version ?? null,
  ...(labels && encodeLabels(labels)),
});

const encodeLabels = ({
  next,
  ended,
}: AgentLabels): Pick<z.infer<typeof agentSummary>, 'next' | 'next_ended'> => ({
  ...(next && {
    next: {
      version: next.version,
      share: next.share,
      failures: next.failures,
      since: next.since.toISOString(),
    },
  }),
  ...(ended && {
    next_ended: {
      version: ended.version,
      share: ended.share,
      at: ended.at,
      runs: ended.runs,
      failed: ended.failed,
      stable_runs: ended.stableRuns,
      stable_failed: ended.stableFailed,
    },
  }),
});

/** The body that gives a version the label `next`. */
export const nextBody = z
  .strictObject({
    share: z
      .int()
      .min(0)
      .max(100)
      .describe(
        'How many of 100 new tasks begin with it. 0: only those whose sender asks for it (Baton-Agent-Label)',
      ),
    failures: z
      .int()
      .min(1)
      .max(1000)
      .optional()
      .describe('After how many failed runs it may lose its share by itself. Default: as it is, or 5'),
    version: z.int().min(1).optional().describe('A stored version. Default: the one that has the label'),
    agent: agentBody.optional().describe('In place of `version`: the document of a new version'),
    replaces: z
      .int()
      .min(1)
      .nullable()
      .optional()
      .describe(
        'Only if this version has the label, null: only if none has it; otherwise 409. Left out: whichever has it, but with share 0 ' +
          'no other version that has a share',
      ),
  })
  .meta({ id: 'NextVersionWrite' });

/** `?version=` of a withdrawal. */
export const WITHDRAWN_VERSION = wholeNumberQuery(
  'Only if this version has the label, or the mark; otherwise 409. Left out: whichever has it',
  { minimum: 1, maximum: 2_147_483_647 },
);

/** `?share=` of a withdrawal. */
export const WITHDRAWN_SHARE = wholeNumberQuery('Only if the version has this share; otherwise 409', {
  minimum: 0,
  maximum: 100,
});

/** The open tasks of an agent that have begun with the same version. */
const openVersion = z
  .object({
    version: z.int().nullable().describe('Of an agent of the catalog. Null: it has none'),
    code: z.string().nullable().describe('Hash of the code of an installed agent. Null: it has none'),
    current: z.boolean().describe('Whether new tasks begin with it'),
    open_tasks: z.int(),
    oldest_at: timeSchema.describe('When the oldest of these tasks was made'),
  })
  .meta({ id: 'OpenVersion' });
export const openVersions = z.object({
  pinned: z.boolean().describe('Whether open tasks keep the version with which they began'),
  versions: z
    .array(openVersion)
    .describe('Those with the oldest task first. Of the newest 10,000 open tasks'),
});

export const encodeOpenVersions = (
  { definition, version: newest, labels }: Pick<Agent, 'definition' | 'version' | 'labels'>,
  found: readonly OpenVersion[],
): z.infer<typeof openVersions> => ({
  pinned: definition.versions === 'pinned',
  versions: found.map(({ version, code, tasks, oldestAt, isInstalled }) => ({
    version,
    code,
    current:
      code === null
        ? version === (newest ?? null) || (version !== null && version === labels?.next?.version)
        : isInstalled,
    open_tasks: tasks,
    oldest_at: oldestAt.toISOString(),
  })),
});

/** The author of a change, as versions name it. */
export function authorOf(request: FastifyRequest): Author {
  const { tenantId, agents, principal } = callerOf(request);
  return { tenantId, agents, by: principal.key, actor: actorOf(request) };
}

/** The ETag of one version of one agent. */
export const etagOf = ({ id, version }: Pick<CatalogEntry, 'id' | 'version'>): string => `"${id}.${version}"`;

/** `?dryRun=` */
export const DRY_RUN = flagQuery('Check the write and answer what it would do. Nothing changes');

/** `?checkTools=` */
export const CHECK_TOOLS = flagQuery(
  'With `dryRun`: ask the MCP servers of the agent for their tools as well. 400 if one cannot be used, or if a name or pattern ' +
    'in `allow`, `approval`, `neverRepeat` or `mayRepeat` fits none of its tools',
);

/**
 * The options of a write: whether it is a dry run, and `If-Match` or `If-None-Match` (RFC 9110 §13.1), which keep two people
 * from overwriting each other's work.
 */
export function writeOptions({ headers }: FastifyRequest, dryRun: boolean): Required<CatalogWriteOptions> {
  const match = headers['if-match'];
  const noneMatch = headers['if-none-match'];
  return {
    dryRun,
    check: (current) => {
      if (match !== undefined) assertMatch(match, current);
      if (noneMatch !== undefined && current && isNamedIn(noneMatch, current)) {
        throw new ProtocolError('precondition-failed', `there is an agent "${current.slug}" already`);
      }
    },
  };
}

function assertMatch(match: string, current: CatalogEntry | undefined): void {
  if (current && isNamedIn(match, current)) return;
  const what = current ? `"${current.slug}" is now at version ${current.version}` : 'there is no such agent';
  throw new ProtocolError('precondition-failed', `If-Match: ${what}: read it again and change that`);
}

const isNamedIn = (tags: string, current: CatalogEntry): boolean =>
  tags.trim() === '*' || tags.split(',').some((tag) => tag.trim() === etagOf(current));
