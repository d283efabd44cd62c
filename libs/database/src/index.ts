export * from './records.js';
export * from './task.store.js';
export * from './run.store.js';
export * from './catalog.store.js';
