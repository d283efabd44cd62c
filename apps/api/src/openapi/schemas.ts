import { stateName, TaskState } from '@baton/a2a';
import { z } from 'zod';

/** Schemas whose JSON Schema is made otherwise than by zod. */
export const generatedSchemas = z.registry<{ id: string; generate: () => object }>();

/** A time in an answer. */
export const timeSchema = z.string().meta({ format: 'date-time' });
/** A time for it. Null: there is none. */
export const encodeTime = (time: Date | null): string | null => time?.toISOString() ?? null;

const STATES = Object.values(TaskState).filter((state): state is TaskState => Number(state) > 0);

/** The state of a task in an answer. */
export const stateSchema = z.string().meta({ id: 'TaskState', enum: STATES.map(stateName) });

/** Anything of A2A: its own specification describes it. */
export const a2aSchema = (what: string) =>
  z.record(z.string(), z.unknown()).describe(`${what} in the JSON of A2A 1.0`);

/** A JSON-RPC 2.0 request to an agent. `decodeEnvelope` and the codec of the method validate it. */
export const rpcRequestSchema = (methods: readonly string[]) =>
  z.object({
    jsonrpc: z.literal('2.0'),
    id: z.union([z.string(), z.number()]).nullable().optional(),
    method: z.enum(methods),
    params: z.record(z.string(), z.unknown()).optional(),
  });

/** Its answer; in a stream, the data of each event. */
export const rpcAnswerSchema = z
  .object({
    jsonrpc: z.literal('2.0'),
    id: z.union([z.string(), z.number()]).nullable(),
    result: z.unknown().optional(),
    error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }).optional(),
  })
  .meta({ id: 'JsonRpcAnswer' });

/** The form of every error, unless a route declares another: `ErrorFilter`. */
export const errorSchema = z
  .object({
    error: z.object({
      code: z.int().describe('The HTTP status'),
      status: z.string().describe('The kind of the error, such as INVALID_PARAMS'),
      message: z.string().describe('What is wrong and what to do'),
      fields: z
        .array(z.object({ field: z.string(), description: z.string() }))
        .optional()
        .describe('The wrong fields of the request'),
    }),
  })
  .meta({ id: 'Error' });
