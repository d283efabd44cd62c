/**
 * What the console and the command line share: the types of the REST API, how a trace is shown, what was
 * asked and answered, and the lines of the fields of an agent file. `generate.mjs` makes the types from
 * the OpenAPI documents of the compiled routes, so neither program can read a member that the API does not send.
 */
import type { components as OperatorComponents } from './generated/operators.js';
import type { components as TenantComponents } from './generated/tenants.js';

/** `/v1`, for tenants. */
export type { paths as TenantPaths } from './generated/tenants.js';
/** `/v1/admin`, for operators, at the management port. */
export type { paths as OperatorPaths } from './generated/operators.js';

/** The named schemas of `/v1`: `TenantSchemas['Schedule']`. */
export type TenantSchemas = TenantComponents['schemas'];
/** The named schemas of `/v1/admin`. */
export type OperatorSchemas = OperatorComponents['schemas'];

export * from './questions/given-answers.js';
export * from './questions/question-fields.js';
export * from './trace/filter-rows.js';
export * from './trace/trace-rows.js';
export * from './yaml/yaml-source.js';

/** A wrong field of a request, as the errors of both APIs list it in `error.fields`. */
export interface WrongField {
  /** Its path, such as `config.agents[0]`. */
  field: string;
  description: string;
}
