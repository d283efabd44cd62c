import type { HTTPMethods } from 'fastify';

/** A path with the methods it has; all others are refused. */
export type NativePath = readonly [path: string, ...methods: HTTPMethods[]];
