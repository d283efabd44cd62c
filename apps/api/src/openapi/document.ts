import type { Scope, JsonObject } from '@baton/a2a';
import { z } from 'zod';
import { type AnswerHeader, type RequestHeader, type Route, type RouteDescription } from './route.js';
import { errorSchema, generatedSchemas } from './schemas.js';

/** What a document is about. */
export interface DocumentInfo {
  title: string;
  description: string;
  /** The URL that the paths begin at. */
  server: string;
  /** How to get a token for these routes. */
  token: string;
}

const TOKEN = 'token';

/** Each by the segment before it, because `:id` alone is ambiguous. */
const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  'tasks/:id': 'Id of the task',
  'requests/:id': 'Id of the task',
  'schedules/:id': 'Id or name of the schedule',
  'tokens/:id': 'Id of the token',
  'webhooks/:id': 'Id of the webhook',
  'connections/:id': 'Id of the connection',
  'bulk-operations/:id': 'Id of the operation',
  'agents/:agent': 'Slug or id of the agent',
  'agent-systems/:agent': 'Slug or id of the agent',
  'versions/:version': 'Number of the version: 1, 2, 3 …',
  'trace/:entry': 'The `entry` of a span: 1, 2, 3 …',
  'secrets/:name': 'Name of the secret',
  'dead-letters/:runId': 'Id of the run',
  'dead-pushes/:id': 'Id of the task',
  'tenants/:tenant': 'Slug of the tenant',
  'tokens/:token': 'Id or prefix of the token',
  'operator-tokens/:token': 'Id or prefix of the token',
  'issuers/:id': 'Id of the entry',
  'spending-caps/:id': 'Id of the spending cap',
  'spending-caps/:period': '`day`, `week` or `month`',
  'hosts/:host': 'The host name',
};

const REQUEST_HEADERS: Readonly<Record<RequestHeader, string>> = {
  'If-Match': 'ETag of the agent as the caller knows it. 412 if it has changed since',
  'If-None-Match': '`*`: only if there is no such agent. 412 if there is one',
  'Last-Event-ID': 'The `id` of the last event that the caller has',
};

const ANSWER_HEADERS: Readonly<Record<AnswerHeader, string>> = {
  ETag: 'The version of the agent, for `If-Match`',
  Location: 'The path of what was created',
};

/** Answers that have the form of all errors, by their names in the document. */
const ERROR_ANSWERS = {
  BadRequest: { status: 400, description: 'The path, the query or the body is wrong; `fields` says where' },
  Unauthenticated: {
    status: 401,
    description: 'The token is missing or invalid',
    header: ['WWW-Authenticate', 'What is wrong with the token (RFC 6750)'],
  },
  Forbidden: { status: 403, description: 'The token lacks a scope, or the tenant is suspended' },
  NotFound: { status: 404, description: 'For this caller there is no such thing' },
  PreconditionFailed: { status: 412, description: '`If-Match` or `If-None-Match` does not hold' },
  TooLarge: { status: 413, description: 'The body is too large' },
  MediaType: { status: 415, description: 'The body has a media type that is not taken here' },
  TooManyRequests: {
    status: 429,
    description: 'A limit is reached: the message names it',
    header: ['Retry-After', 'Seconds until the request may be sent again'],
  },
  Other: { status: 0, description: 'Any other error' },
} as const satisfies Record<
  string,
  { status: number; description: string; header?: readonly [string, string] }
>;
type ErrorName = keyof typeof ERROR_ANSWERS;

/**
 * The OpenAPI 3.1 document of these routes. It names aliases in its description only. Bodies are the schemas that validate; parameters, scopes and statuses are what the
 * routes declare. Throws an Error for a route without a description, or with a parameter without a description.
 */
export function buildDocument(
  routes: readonly Route[],
  { title, description, server, token }: DocumentInfo,
): JsonObject {
  const components = new Components();
  const aliases = new Set(routes.flatMap(({ alias }) => alias ?? []));
  const paths: Record<string, JsonObject> = {};
  for (const route of routes.filter(({ alias }) => alias === undefined)) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, components) };
  }
  const error = components.schemaOf(errorSchema);
  return {
    openapi: '3.1.1',
    info: {
      title,
      description: [description, ...aliases].join('\n\n'),
      version: '1',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: server }],
    paths,
    components: {
      schemas: components.schemas,
      responses: Object.fromEntries(
        Object.entries(ERROR_ANSWERS).map(([name, answer]) => [name, errorAnswer(answer, error)]),
      ),
      securitySchemes: { [TOKEN]: { type: 'http', scheme: 'bearer', description: token } },
    },
  };
}

function errorAnswer(
  { description, header }: { description: string; header?: readonly [string, string] },
  schema: JsonObject,
): JsonObject {
  return {
    description,
    ...(header && { headers: { [header[0]]: { description: header[1], schema: { type: 'string' } } } }),
    content: { 'application/json': { schema } },
  };
}

function operationOf(route: Route, components: Components): JsonObject {
  const { description: about, path, method, access, roles, scopes, moreScopes } = route;
  if (!about) throw new Error(`${method} ${path}: describe it with @Describe`);
  const { id, summary, body, bodyTypes = ['application/json'] } = about;
  const enough = scopes && enoughOf(scopes, moreScopes);
  return {
    operationId: id,
    summary,
    ...(enough && { description: `Scope: ${enough.map(inWords).join(' or ')}.` }),
    ...(access === 'operator' && { description: `Role: \`${[...roles, 'full'].join('` or `')}\`.` }),
    tags: [tagOf(path)],
    // Each is enough. A required role is in the list (OpenAPI 3.1, Security Requirement Object).
    security:
      access === 'public' ? [] : enough ? enough.map((names) => ({ [TOKEN]: names })) : [{ [TOKEN]: [] }],
    parameters: parametersOf(route),
    ...(body && {
      requestBody: { required: true, content: contentOf(bodyTypes, components.schemaOf(body)) },
    }),
    responses: { ...successesOf(route, about, components), ...failuresOf(route, about, components) },
  };
}

/** Each set of scopes that is enough. */
const enoughOf = (scopes: readonly Scope[], more: readonly Scope[] | undefined): Scope[][] => [
  ...[...new Set(scopes)]
    .filter((scope) => scope !== 'admin')
    .flatMap((scope) => more?.map((other) => [scope, other]) ?? [[scope]]),
  ['admin'],
];

const inWords = (scopes: readonly Scope[]): string => scopes.map((name) => `\`${name}\``).join(' and ');

/** `/v1/agents/:agent` is about agents, `/v1/admin/hosts` about hosts. */
const tagOf = (path: string): string => /^\/v1\/(?:admin\/)?([\w-]+)/.exec(path)?.[1] ?? 'other';

const contentOf = (types: readonly string[], schema: JsonObject): JsonObject =>
  Object.fromEntries(types.map((type) => [type, { schema }]));

function parametersOf({ path, query, description }: Route): JsonObject[] {
  const inPath = [...path.matchAll(/[\w-]+\/:(\w+)/g)].map(([key, name]) => {
    const text = PATH_PARAMETERS[key];
    if (text === undefined) throw new Error(`${path}: describe the parameter ${key}`);
    return { name, in: 'path', required: true, description: text, schema: { type: 'string' } };
  });
  const inQuery = [...query].map(([name, { shape }]) => ({
    name,
    in: 'query',
    ...(shape.isRequired && { required: true }),
    description: shape.description,
    schema: shape.schema,
  }));
  const headers = (description?.requestHeaders ?? []).map((name) => ({
    name,
    in: 'header',
    description: REQUEST_HEADERS[name],
    schema: { type: 'string' },
  }));
  return [...inPath, ...inQuery, ...headers];
}

function successesOf({ status }: Route, about: RouteDescription, components: Components): JsonObject {
  const { answer, answerTypes = ['application/json'], statuses = [status], answerHeaders = [] } = about;
  const headers = answerHeaders.map((name) => [
    name,
    { description: ANSWER_HEADERS[name], schema: { type: 'string' } },
  ]);
  const success = {
    description: 'Done',
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) as JsonObject }),
    ...(answer && { content: contentOf(answerTypes, components.schemaOf(answer)) }),
  };
  const empty = { description: 'Done, without a body' };
  return Object.fromEntries(statuses.map((each) => [each, each === 204 ? empty : success]));
}

function failuresOf(
  { path, query, access, description }: Route,
  about: RouteDescription,
  components: Components,
): JsonObject {
  if (about.errors) {
    const content = contentOf(['application/json'], components.schemaOf(about.errors));
    return { default: { description: 'Every error', content } };
  }
  const hasBody = about.body !== undefined;
  const isConditional = description?.requestHeaders?.includes('If-Match') === true;
  const possible: Record<ErrorName, boolean> = {
    BadRequest: hasBody || query.size > 0 || path.includes(':'),
    Unauthenticated: access !== 'public',
    Forbidden: access === undefined,
    NotFound: path.includes(':'),
    PreconditionFailed: isConditional,
    TooLarge: hasBody,
    MediaType: hasBody,
    TooManyRequests: access !== 'public',
    Other: true,
  };
  const failures = (Object.keys(possible) as ErrorName[])
    .filter((name) => possible[name])
    .map((name) => [ERROR_ANSWERS[name].status || 'default', { $ref: `#/components/responses/${name}` }]);
  const own = Object.entries(about.otherAnswers ?? {}).map(([status, schema]) => [
    status,
    {
      description: 'Refused; or, for a thing that does not exist, the form of all errors',
      content: contentOf(['application/json'], components.schemaOf(schema)),
    },
  ]);
  return Object.fromEntries([...failures, ...own]) as JsonObject;
}

/** The schemas of a document. Those with an id are written once, and are referred to by it. */
class Components {
  readonly schemas: JsonObject = {};

  /** The schema of a type as a place in the document has it. */
  schemaOf(type: z.ZodType): JsonObject {
    const generated = generatedSchemas.get(type);
    if (generated) {
      this.schemas[generated.id] = generated.generate();
      return { $ref: IN_DOCUMENT + generated.id };
    }
    // As a member, a type with an id becomes a reference. In answers objects are open, because further members may come; a
    // body is as callers write it. Rules that JSON Schema cannot express are left out. The server checks them.
    const whole = z.toJSONSchema(z.object({ of: type }), { io: 'input', unrepresentable: 'any' });
    const { properties, $defs = {} } = withReferences(whole) as typeof whole;
    Object.assign(this.schemas, $defs);
    return properties?.of as JsonObject;
  }
}

const IN_ZOD = '#/$defs/';
const IN_DOCUMENT = '#/components/schemas/';

/** A JSON Schema whose references lead to the components of the document. */
function withReferences(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withReferences);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string'
        ? value.replace(IN_ZOD, IN_DOCUMENT)
        : withReferences(value),
    ]),
  );
}
