/** `console.debug`; `console.log` and standard output; `console.warn`; `console.error` and standard error. */
export type ConsoleLevel = 'debug' | 'info' | 'warn' | 'error';
