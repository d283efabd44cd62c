import { AgentFailure } from './agent-failure.js';

/** A provider refuses a request with its files of tools. It may accept the request without them. */
export class ToolFilesRefused extends AgentFailure {}
