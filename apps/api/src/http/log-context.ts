import type { FastifyRequest } from 'fastify';

/** What a request's log line says besides method, route, status and duration. Filled in as it becomes known. */
export interface LogContext {
  tenantId?: string;
  agent?: string;
  taskId?: string;
  /** JSON-RPC method. */
  rpcMethod?: string;
  /** JSON-RPC error code of the answer. */
  rpcError?: number;
  /** The limit of the tenant that the request was refused for. */
  limit?: string;
  /** How a stream ended. */
  stream?: string;
  /** Sequence of the last frame of a stream. */
  lastSequence?: number;
  /** When a stream's headers went out; its duration in the metrics ends here. */
  streamedAt?: number;
}

const contexts = new WeakMap<FastifyRequest, LogContext>();

/** The context of a request: always the same object. */
export function logContextOf(request: FastifyRequest): LogContext {
  let context = contexts.get(request);
  if (!context) {
    context = {};
    contexts.set(request, context);
  }
  return context;
}
