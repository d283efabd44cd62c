import { z } from 'zod';
import type { AgentDefinition } from './agent.js';
import { parseFields } from './parse-fields.js';
import { retryPolicy } from './retry-policy.js';

const text = z.string().trim().min(1);
const texts = z.array(text).default([]);
const url = z.url();

const skill = z
  .strictObject({
    id: text,
    name: text,
    description: text,
    tags: texts,
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

const definition = z.strictObject({
  name: text,
  description: text,
  version: text.default('1.0.0'),
  runtime: text,
  config: z.record(z.string(), z.unknown()).default({}),
  skills: z.array(skill).default([]),
  inputModes: texts,
  outputModes: texts,
  extensions: z.array(extension).default([]),
  a2aEnabled: z.boolean().optional(),
  provider: z.strictObject({ organization: text, url }).optional(),
  documentationUrl: url.optional(),
  iconUrl: url.optional(),
  retry: retryPolicy.optional(),
  /** Slugs of the tenants an installed agent is for; left out = all. */
  tenants: z.array(text).optional(),
});

/** An author's definition of an agent, with the tenants an operator gives it to (unset = every tenant). */
export type ParsedAgentDefinition = AgentDefinition & { tenants?: string[] };

/**
 * Check what an author declares about an agent (`agent.yaml`, or the body that creates one) and fill in the
 * defaults. Throws `invalid-params` naming the path of every wrong field.
 */
export const parseAgentDefinition = (raw: unknown): ParsedAgentDefinition =>
  parseFields(definition, raw, '', 'agent');
