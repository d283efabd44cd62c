import { AgentFailure } from './agent-failure.js';

/** A model is overloaded or out of reach, also after all retries. Another model may answer the same request. */
export class ModelUnavailable extends AgentFailure {}
