export * from './compute.module.js';
export * from './compute-pool.js';
export { schemaExcess } from './schema-bounds.js';
