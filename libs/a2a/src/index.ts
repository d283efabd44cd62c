export * from './model.js';
export * from './agent.js';
export * from './call-context.js';
export * from './codec.js';
export * from './errors.js';
export * from './operation.js';
export * from './task-event.js';
export * from './task-state.js';
