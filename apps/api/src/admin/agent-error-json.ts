import type { RunErrorRecord } from '@baton/tasks';
import { z } from 'zod';
import { encodeRunError, runError } from '../rest/tasks/run-json.js';

/** The last error in an agent's code, as operators see it. */
export const agentError = runError
  .extend({ name: z.string() })
  .nullable()
  .describe("The last error in the agent's code");

export const encodeAgentError = (error: RunErrorRecord | null | undefined): z.infer<typeof agentError> =>
  error ? { name: error.name, ...encodeRunError(error, true) } : null;
