import { AgentFailure } from './agent-failure.js';

/** A provider refuses a request of this size. A shorter conversation may fit. */
export class RequestTooLarge extends AgentFailure {}
