import { isJsonObject, type JsonObject } from '@baton/a2a';
import { schemaExcess } from '@baton/compute';
import type { JsonSchema } from '../tool-sources.js';
import { type NamePatterns, fits } from './mcp-config.js';
import { headerParams } from './header-params.js';
import { schemaFault } from './schema-fault.js';
import { ToolListExcess } from './tool-list-excess.js';

/** Maximum number of allowed tools of a server. */
const MAX_TOOLS = 1_000;
/** Maximum size of the allowed tools, as JSON. */
const MAX_BYTES = 1024 * 1024;
/** Maximum number of listed tools, allowed or not. */
const MAX_LISTED = 10_000;
/** MCP recommends names of up to 128 characters. */
const MAX_NAME = 128;
/** Maximum number of tools that are left out by name. */
const MAX_LEFT_OUT = 20;

/** The members of a server's tool that Baton uses. */
export interface ListedTool {
  name: string;
  description: string;
  inputSchema: JsonSchema;
  /** The server declares that a call changes nothing, or that a repeated call changes nothing more. */
  isRepeatable: boolean;
}

/** A tool that the agent does not get. */
export interface LeftOutTool {
  /** Its name, or its position if it has none. */
  name: string;
  /** A clause about the tool. */
  reason: string;
}

/**
 * The tools of a server, as its pages are read. A tool that cannot be used is left out alone. `allow` of the definition counts first:
 * other tools are not looked at.
 */
export class ToolList {
  readonly tools: ListedTool[] = [];
  /** The first tools that were left out. */
  readonly leftOut: LeftOutTool[] = [];
  leftOutCount = 0;
  /** Whether a tool was left out because it is too large. */
  hasExcess = false;
  /** The names of all listed tools. */
  readonly names = new Set<string>();
  private listed = 0;
  private bytes = 0;
  private isCut = false;

  /** @param isModern the server reads parameters from headers: a tool that marks them wrongly is left out */
  constructor(
    private readonly allow: NamePatterns | undefined,
    private readonly isModern = false,
  ) {}

  /** Whether it takes no more tools. */
  get isFull(): boolean {
    return this.tools.length >= MAX_TOOLS || this.listed >= MAX_LISTED;
  }

  /** Why the server is of no use: all tools that the agent may use are left out. */
  get problem(): string | undefined {
    const [first] = this.leftOut;
    if (this.tools.length > 0 || !first) return undefined;
    const others = this.leftOutCount > 1 ? `, and ${this.leftOutCount - 1} more are odd` : '';
    return `none of its tools can be used: its tool "${first.name}" ${first.reason}${others}`;
  }

  /** Adds a page of the list. Throws ToolListExcess if the tools are too large together. */
  add(page: readonly unknown[]): void {
    for (const tool of page) {
      if (this.isFull) return this.noteMore();
      this.listed += 1;
      this.addTool(tool);
    }
  }

  /** The server has more tools. Those that the list does not take are left out. */
  noteMore(): void {
    if (this.isCut || !this.isFull) return;
    this.isCut = true;
    const what = `number ${this.listed + 1} of its list, and each after it,`;
    this.leaveOut(what, `is one too many: name those that the agent needs in allow`, true);
  }

  private addTool(tool: unknown): void {
    const { name, title, description, inputSchema, execution, annotations } = isJsonObject(tool)
      ? tool
      : ({} as JsonObject);
    if (typeof name !== 'string' || name === '') {
      // No pattern fits it.
      const isWanted = this.allow === undefined || fits(this.allow, '');
      if (isWanted) this.leaveOut(`number ${this.listed} of its list`, nameProblem(tool));
      return;
    }
    const isTwice = this.names.has(name);
    if (name.length <= MAX_NAME) this.names.add(name);
    if (this.allow !== undefined && !fits(this.allow, name)) return;
    if (isTwice) return this.leaveOut(name, 'is listed a second time');
    if (name.length > MAX_NAME)
      return this.leaveOut(name, `has a name of more than ${MAX_NAME} characters`, true);
    // A model cannot use a tool that works only as an MCP task.
    if (isJsonObject(execution) && execution.taskSupport === 'required')
      return this.leaveOut(name, 'works only as an MCP task');
    const schema = usableSchema(inputSchema);
    if (typeof schema === 'string') return this.leaveOut(name, schema);
    const excess = schemaExcess(schema);
    if (excess !== undefined) return this.leaveOut(name, `has an input schema that ${excess}`, true);
    const fault = schemaFault(schema);
    if (fault !== undefined) return this.leaveOut(name, `has an input schema ${fault}`);
    const params = this.isModern ? headerParams(schema) : [];
    if (typeof params === 'string') return this.leaveOut(name, params);
    const text = [description, title].find((each) => typeof each === 'string' && each !== '') ?? '';
    const { readOnlyHint, idempotentHint } = isJsonObject(annotations) ? annotations : ({} as JsonObject);
    const isRepeatable = readOnlyHint === true || idempotentHint === true;
    const listed = { name, description: text as string, inputSchema: schema, isRepeatable };
    this.bytes += Buffer.byteLength(JSON.stringify(listed));
    if (this.bytes > MAX_BYTES) {
      const remedy = 'name those that the agent needs in allow';
      throw new ToolListExcess(`its list of tools is larger than ${MAX_BYTES} bytes: ${remedy}`);
    }
    this.tools.push(listed);
  }

  private leaveOut(name: string, reason: string, isExcess = false): void {
    this.leftOutCount += 1;
    this.hasExcess ||= isExcess;
    if (this.leftOut.length < MAX_LEFT_OUT) this.leftOut.push({ name: name.slice(0, MAX_NAME), reason });
  }
}

function nameProblem(tool: unknown): string {
  if (!isJsonObject(tool)) return `is ${kindOf(tool)}, not an object`;
  return tool.name === undefined || tool.name === ''
    ? 'has no name'
    : `has a name that is ${kindOf(tool.name)}, not a text`;
}

/** The schema as providers and the validator take it, or why there is none: a clause about the tool. */
function usableSchema(schema: unknown): JsonSchema | string {
  if (schema === undefined || schema === null) return 'has no input schema';
  if (!isJsonObject(schema)) return `has an input schema that is ${kindOf(schema)}, not an object`;
  const { type = 'object', properties, required, ...rest } = schema;
  if (type !== 'object')
    return `has an input schema of type ${JSON.stringify(type).slice(0, 40)}, not "object"`;
  const named = usableProperties(properties);
  if (typeof named === 'string') return named;
  const isList = Array.isArray(required) && required.every((name) => typeof name === 'string');
  if (required !== undefined && required !== null && !isList)
    return 'has an input schema whose "required" is not a list of names';
  return { ...rest, type, ...(named && { properties: named }), ...(isList && { required }) };
}

function usableProperties(properties: unknown): JsonObject | string | undefined {
  if (properties === undefined || properties === null) return undefined;
  // In PHP an empty object is written as a list.
  if (Array.isArray(properties) && properties.length === 0) return {};
  if (!isJsonObject(properties)) return `has an input schema whose "properties" is ${kindOf(properties)}`;
  // `true` is a schema, which providers do not take.
  const entries = Object.entries(properties).map(
    ([name, schema]) => [name, schema === true ? {} : schema] as const,
  );
  const odd = entries.find(([, schema]) => !isJsonObject(schema));
  return odd === undefined
    ? Object.fromEntries(entries)
    : `has an input schema whose property ${JSON.stringify(odd[0].slice(0, 40))} is ${kindOf(odd[1])}, not a schema`;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'string' ? 'a text' : `a ${typeof value}`;
}
