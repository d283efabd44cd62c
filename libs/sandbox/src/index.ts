export { hideProcess } from './hide-process.js';
export { sandboxed, sandboxProblem } from './sandbox.js';
export type { SandboxFiles } from './landlock.js';
