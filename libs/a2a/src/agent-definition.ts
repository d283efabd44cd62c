import { z } from 'zod';
import {
  type AgentDefinition,
  type ExtendedDefinition,
  clampRetry,
  retryPolicy,
  VERSION_POLICIES,
} from './agent.js';
import { ProtocolError } from './protocol-error.js';
import type { AgentSkill } from './model.js';
import { parseFields } from './parse-fields.js';
import { SCOPES } from './rights.js';
import { isWebUrl, webUrl } from './web-url.js';

const text = z.string().trim().min(1);
/** Lists and menus show it in one line. */
const MAX_NAME = 200;
/** Other agents and models read those of all agents at once, so none may be long. */
const MAX_DESCRIPTION = 4_000;
const texts = z.array(text).default([]);

const skill = z
  .strictObject({
    id: text,
    name: text,
    description: text,
    tags: texts.describe('Words by which others find it; a card should name at least one'),
    examples: texts,
    inputModes: texts,
    outputModes: texts,
  })
  .transform((fields) => ({ ...fields, securityRequirements: [] }));

const extension = z
  .strictObject({
    uri: text,
    description: z.string().default(''),
    required: z.boolean().default(false),
    params: z.record(z.string(), z.unknown()).optional(),
  })
  .transform((fields) => ({ ...fields, params: fields.params }));

const extended = z
  .strictObject({
    scopes: z
      .array(z.enum(SCOPES, { error: `choose from ${SCOPES.join(', ')}` }))
      .min(1)
      .optional()
      .describe('A token needs one of these to read it; left out = every token that may read the card'),
    description: text.optional().describe('In place of that of the card'),
    documentationUrl: webUrl.optional().describe('In place of that of the card'),
    skills: z
      .array(skill)
      .default([])
      .describe('Besides those of the card; one with the same id replaces it'),
  })
  .refine(
    ({ description, documentationUrl, skills }) =>
      description !== undefined || documentationUrl !== undefined || skills.length > 0,
    'say what it has besides the card: a description, a documentationUrl or skills',
  );

/** From about a second to a year. */
const waitHours = z.number().min(0.0003).max(8760);
const reminders = z
  .strictObject({
    remindAfterHours: waitHours
      .optional()
      .describe(
        'Webhooks get the event of the question once more, with `reminder`, after this time in hours',
      ),
    escalateAfterHours: waitHours
      .optional()
      .describe('Webhooks get an event `task.escalation` after this time in hours'),
  })
  .refine(
    ({ remindAfterHours, escalateAfterHours }) =>
      remindAfterHours !== undefined || escalateAfterHours !== undefined,
    'say remindAfterHours or escalateAfterHours',
  )
  .refine(
    ({ remindAfterHours = 0, escalateAfterHours = Infinity }) => remindAfterHours < escalateAfterHours,
    { path: ['escalateAfterHours'], message: 'must be more than remindAfterHours' },
  );

/** What an agent file may hold: an `agent.yaml`, or as JSON the body that creates an agent of a catalog. */
export const agentFile = z.strictObject({
  slug: text.optional().describe("The agent's name in URLs; left out = made from its name"),
  enabled: z.boolean().optional().describe('False: it takes no messages; left out = as it was'),
  name: text.max(MAX_NAME).describe('What people call it'),
  description: text.max(MAX_DESCRIPTION).describe('What it is for; callers and other agents choose by it'),
  version: text.default('1.0.0').describe("The version that its card shows, of the author's choice"),
  runtime: text.describe('What executes it'),
  config: z.record(z.string(), z.unknown()).default({}).describe('Settings of the runtime'),
  skills: z.array(skill).default([]).describe('Left out = one that is called like the agent'),
  inputModes: texts.describe(
    'Media types that it takes; others are refused; left out = it takes all, and its card says text and JSON',
  ),
  outputModes: texts.describe('Media types that it answers with; left out = text and JSON'),
  extensions: z.array(extension).default([]).describe('A2A extensions that it supports'),
  extended: extended.optional().describe('The extended card: what only callers with a token may read'),
  pushNotifications: z
    .boolean()
    .optional()
    .describe('Whether callers may ask for push notifications; left out = PUSH_NOTIFICATIONS'),
  a2aEnabled: z.boolean().optional().describe('False: hidden from callers of other systems'),
  provider: z.strictObject({ organization: text, url: webUrl }).optional(),
  documentationUrl: webUrl.optional(),
  iconUrl: webUrl.optional(),
  retry: retryPolicy.optional().describe('What becomes of a turn whose worker died'),
  price: z
    .strictObject({
      perTask: z
        .string()
        .regex(/^\d{1,9}(\.\d{1,6})?$/, 'must be a text such as "0.02", with up to six decimals')
        .describe('Of each task, in the currency of MODEL_PRICES, such as "0.02"'),
    })
    .optional()
    .describe('What a task costs besides calls of models that Baton makes; spending caps count it'),
  reminders: reminders.optional().describe('When webhooks are notified again that a task waits for a person'),
  versions: z
    .enum(VERSION_POLICIES)
    .optional()
    .describe(
      'Which version a task runs that has begun: the `latest`, or the one with which it began (`pinned`); left out = latest',
    ),
  idempotencyHours: z
    .int()
    .min(0)
    .max(8760)
    .optional()
    .describe(
      'How long a repeated message joins its task, in hours; 0 = never; left out = IDEMPOTENCY_HOURS',
    ),
  tenants: z.array(text).optional().describe('Installed agents only: slugs of the tenants it is for'),
});

/** An author's definition of an agent, with the tenants an operator gives it to (unset = every tenant). */
export type ParsedAgentDefinition = AgentDefinition & { tenants?: string[] };

/** An agent of a catalog as its author has it. */
export interface AgentDocument {
  /** The name of the agent in URLs; left out = the name of its file, or the name in the path of the request. */
  slug?: string;
  /** Left out = as it was; a new agent is enabled. */
  enabled?: boolean;
  definition: AgentDefinition;
}

/**
 * Check what an operator declares about an installed agent and fill in the defaults. Throws `invalid-params`
 * naming the path of every wrong field.
 */
export function parseAgentDefinition(raw: unknown): ParsedAgentDefinition {
  const { slug, enabled, ...definition } = parseFields(agentFile, raw, '', 'agent');
  if (slug !== undefined) {
    throw ProtocolError.invalidParams(
      'slug',
      'an installed agent has the name of its folder: leave this out',
    );
  }
  if (enabled !== undefined) {
    throw ProtocolError.invalidParams('enabled', 'is for agents of a catalog: leave this out');
  }
  return definition;
}

/** Reads the definition of an agent of a tenant's catalog. @throws ProtocolError `invalid-params` with the field */
export function parseAgentDocument(raw: unknown): AgentDocument {
  const { slug, enabled, tenants, ...definition } = parseFields(agentFile, raw, '', 'agent');
  if (tenants) {
    throw ProtocolError.invalidParams(
      'tenants',
      'is for installed agents; this one is for its own tenant alone, so leave it out',
    );
  }
  return { ...(slug !== undefined && { slug }), ...(enabled !== undefined && { enabled }), definition };
}

/** What a definition leaves out that its card should have, by field. The card is valid without it. */
export function missingInCard({
  skills,
  extended,
}: AgentDefinition): { field: string; description: string }[] {
  const untagged = (list: readonly AgentSkill[], at: string) =>
    list.flatMap(({ tags }, index) =>
      tags.length > 0
        ? []
        : [
            {
              field: `${at}[${index}].tags`,
              description: 'is empty: name at least one word that finds the skill',
            },
          ],
    );
  return [...untagged(skills, 'skills'), ...untagged(extended?.skills ?? [], 'extended.skills')];
}

/**
 * A definition as its author would write it: in the order of the file, without what is the same when it is left
 * out. Parsed, it is the same definition again, without links that `withoutUnsafeLinks` leaves out.
 */
export function writeAgentDefinition(stored: AgentDefinition): Record<string, unknown> {
  const definition = withoutUnsafeLinks(stored);
  const skills = definition.skills.map(writeSkill);
  const extensions = definition.extensions.map(withoutEmpty);
  const extended = definition.extended && writeExtended(definition.extended);
  const retry = definition.retry && clampRetry(definition.retry);
  const fields: Record<string, unknown> = { ...definition, skills, extensions, extended, retry };
  const ordered = Object.keys(agentFile.shape).filter((key) => key in fields);
  return withoutEmpty(Object.fromEntries(ordered.map((key) => [key, fields[key]])));
}

/** A definition without links of other schemes than http and https, which earlier releases have stored. */
export function withoutUnsafeLinks(definition: AgentDefinition): AgentDefinition {
  const { documentationUrl, iconUrl, provider, extended, ...others } = definition;
  const { documentationUrl: extendedUrl, ...extendedOthers } = extended ?? { skills: [] };
  return {
    ...others,
    ...(isWebUrl(documentationUrl) && { documentationUrl }),
    ...(isWebUrl(iconUrl) && { iconUrl }),
    ...(provider && isWebUrl(provider.url) && { provider }),
    ...(extended && {
      extended: { ...extendedOthers, ...(isWebUrl(extendedUrl) && { documentationUrl: extendedUrl }) },
    }),
  };
}

const writeSkill = ({ securityRequirements: _, ...fields }: AgentSkill): Record<string, unknown> =>
  withoutEmpty(fields);

const writeExtended = ({ skills, ...fields }: ExtendedDefinition): Record<string, unknown> =>
  withoutEmpty({ ...fields, skills: skills.map(writeSkill) });

const withoutEmpty = (fields: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === '' ||
  (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
