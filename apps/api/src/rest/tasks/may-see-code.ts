import type { RequestContext } from '../../core/call-resolver.js';

/** Whether the caller may see what shows the code of agents. */
export const maySeeCode = ({ scopes }: RequestContext): boolean =>
  scopes.includes('agents:write') || scopes.includes('admin');
