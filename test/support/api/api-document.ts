import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

export type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

/** An operation of an OpenAPI document. */
export interface Operation {
  id: string;
  /** In upper case. */
  method: string;
  /** With `{agent}` where the agent stands. */
  path: string;
  /** As the document has it. */
  spec: Json;
}

/** An OpenAPI document, and checks of requests and answers against it. */
export class ApiDocument {
  readonly operations: readonly Operation[];
  private readonly bodies: Ajv2020;
  private readonly answers: Ajv2020;

  constructor(readonly json: Json) {
    this.operations = Object.entries(json.paths as Record<string, Json>).flatMap(([path, methods]) =>
      Object.entries(methods as Record<string, Json>).map(([method, spec]) => ({
        id: spec.operationId as string,
        method: method.toUpperCase(),
        path,
        spec,
      })),
    );
    this.bodies = validatorOf(json);
    this.answers = validatorOf(closed(json) as Json);
  }

  /** Reads it from a running API. */
  static async from(url: string): Promise<ApiDocument> {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
    return new ApiDocument((await response.json()) as Json);
  }

  operation(id: string): Operation {
    const found = this.operations.find((operation) => operation.id === id);
    if (!found) throw new Error(`the document has no operation ${id}`);
    return found;
  }

  /** The schema of the JSON body of an operation. */
  bodySchema({ spec }: Operation): Json | undefined {
    return (spec.requestBody as Json | undefined)?.content['application/json']?.schema as Json | undefined;
  }

  /** Whether the document takes this as the body. */
  takes({ path, method }: Operation, body: unknown): boolean {
    const at = ['paths', path, method.toLowerCase(), 'requestBody', 'content', 'application/json', 'schema'];
    return validate(this.bodies, at)(body);
  }

  /**
   * What is wrong with an answer. Members that the document does not have are wrong, too: it is what clients are made from.
   * @param body the parsed JSON of it
   */
  faultsOf({ path, method, spec }: Operation, status: number, type: string | null, body: unknown): unknown {
    const responses = spec.responses as Record<string, Json>;
    const name = String(status) in responses ? String(status) : 'default';
    if (name === 'default' && status < 300) return `${status} is not in the document`;
    const shared = (responses[name]!.$ref as string | undefined)?.split('/').slice(1);
    const at = shared ?? ['paths', path, method.toLowerCase(), 'responses', name];
    const content = at.reduce((json, key) => json[key] as Json, this.json).content as Json | undefined;
    const mediaType = type?.split(';')[0];
    if (!content || !mediaType)
      return content || mediaType ? `${status} with ${String(mediaType)}` : undefined;
    if (!(mediaType in content)) return `${mediaType} is not in the document`;
    if (!isJson(mediaType)) return undefined;
    const check = validate(this.answers, [...at, 'content', mediaType, 'schema']);
    return check(body) ? undefined : check.errors;
  }
}

/** Whether content of this type is one JSON value. */
export const isJson = (type: string): boolean => /^application\/([\w.-]+\+)?json(;|$)/.test(type);

const validatorOf = (document: Json): Ajv2020 =>
  new Ajv2020({ strict: false, validateFormats: false, allErrors: true }).addSchema(document, 'document');

function validate(ajv: Ajv2020, at: readonly string[]): ValidateFunction {
  const pointer = at.map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1')));
  return ajv.getSchema(`document#/${pointer.join('/')}`)!;
}

/** The same without room for further members. What takes any member keeps doing so. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy: Json = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpenObject = copy.type === 'object' && 'properties' in copy && !('additionalProperties' in copy);
  return isOpenObject ? { ...copy, additionalProperties: false } : copy;
}
