export * from './compute.module.js';
export * from './compute-pool.js';
export * from './compute-refused.js';
export { schemaExcess } from './schema-bounds.js';
