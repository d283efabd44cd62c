import { join, parse } from 'node:path';
import type { FunctionTool, ToolSchema } from './function-tool.js';
import type { DeclaredTool } from '../protocol.js';
import { functionFiles } from '../function-files.js';
import { defaultExport, importModule } from './load-executor.js';
import { LoadError } from './load-error.js';

/** A function of an agent, ready to be called. */
export interface LoadedTool {
  declared: DeclaredTool;
  /** What `execute` gets for an input of the tool's schema. Rejects with an Error that the model may read. */
  read: (input: unknown) => Promise<unknown>;
  execute: FunctionTool<unknown>['execute'];
  verify?: FunctionTool<unknown>['verify'];
}

/** All that a model is offered takes room in its context. */
const MAX_TOOLS = 128;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** The tool with which a model reads on in long results. */
const RESERVED = 'read_result';
const ON_UNKNOWN: readonly unknown[] = ['repeat', 'ask', 'fail'];

/**
 * Loads the functions in `tools/` of an agent's folder.
 * @param folder absolute path of the agent's folder
 * @throws Error with the file and the problem; `loadFaultOf` reads it
 */
export async function loadTools(folder: string): Promise<LoadedTool[]> {
  const files = await functionFiles(folder);
  if (files.length > MAX_TOOLS) throw new Error(`tools/ has more than ${MAX_TOOLS} modules`);
  const tools = new Map<string, LoadedTool>();
  for (const file of files) {
    const tool = await loadTool(folder, file);
    const { name } = tool.declared;
    if (tools.has(name)) throw new LoadError(join(folder, file), `there is another tool "${name}"`);
    tools.set(name, tool);
  }
  return [...tools.values()];
}

async function loadTool(folder: string, path: string): Promise<LoadedTool> {
  const file = join(folder, path);
  const fault = (reason: string): LoadError => new LoadError(file, reason);
  const { name } = parse(path);
  if (!NAME.test(name))
    throw fault('its name must have 1 to 64 letters, digits, "_" or "-": it is the name of the tool');
  if (name === RESERVED) throw fault(`Baton has a tool "${RESERVED}" itself: rename the file`);
  const exported = defaultExport(await importModule(file, folder));
  if (typeof exported !== 'object' || exported === null) {
    throw fault('has no default export; export the tool as default: export default defineTool({…})');
  }
  const {
    description,
    inputSchema,
    needsApproval = false,
    onUnknown = 'ask',
    verify,
    execute,
  } = exported as Partial<FunctionTool<unknown>>;
  if (typeof description !== 'string' || description.trim() === '') throw fault('description must be a text');
  if (typeof execute !== 'function') throw fault('execute must be a function');
  if (typeof needsApproval !== 'boolean') throw fault('needsApproval must be true or false');
  if (verify !== undefined && typeof verify !== 'function') throw fault('verify must be a function');
  if (!ON_UNKNOWN.includes(onUnknown)) throw fault('onUnknown must be "repeat", "ask" or "fail"');
  const schema = schemaOf(inputSchema, fault);
  return {
    declared: {
      name,
      description,
      inputSchema: schema,
      needsApproval,
      onUnknown,
      verifies: verify !== undefined,
    },
    read: isToolSchema(inputSchema)
      ? (input) => validated(inputSchema, input)
      : (input) => Promise.resolve(input),
    execute: execute.bind(exported),
    ...(verify && { verify: verify.bind(exported) }),
  };
}

/** The JSON schema that the model gets. */
function schemaOf(given: unknown, fault: (reason: string) => LoadError): Record<string, unknown> {
  const schema: unknown = isToolSchema(given) ? jsonSchemaOf(given, fault) : given;
  if (typeof schema !== 'object' || schema === null || (schema as { type?: unknown }).type !== 'object') {
    throw fault('inputSchema must be a JSON schema with type: object, or a schema of an object of zod');
  }
  return schema as Record<string, unknown>;
}

const isToolSchema = (given: unknown): given is ToolSchema =>
  ((typeof given === 'object' && given !== null) || typeof given === 'function') && '~standard' in given;

/** Standard JSON Schema: https://standardschema.dev/json-schema */
function jsonSchemaOf(schema: ToolSchema, fault: (reason: string) => LoadError): unknown {
  const { vendor, jsonSchema } = schema['~standard'] as ToolSchema['~standard'] & {
    jsonSchema?: { input?: (options: { target: string }) => unknown };
  };
  if (typeof jsonSchema?.input !== 'function') {
    throw fault(`inputSchema is a schema of ${vendor} that cannot tell its JSON schema: zod can from 4.2 on`);
  }
  try {
    return jsonSchema.input({ target: 'draft-2020-12' });
  } catch (error) {
    throw fault(`inputSchema has no JSON schema: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function validated(schema: ToolSchema, input: unknown): Promise<unknown> {
  const result = await schema['~standard'].validate(input);
  if (result.issues)
    throw new TypeError(`its input is not valid: ${result.issues.map(({ message }) => message).join('; ')}`);
  return result.value;
}
