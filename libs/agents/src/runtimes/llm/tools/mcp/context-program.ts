import { createHash } from 'node:crypto';
import { historyBefore, type Turn } from '../../../../agent-runtime.js';
import type { KeepableProgram, KeptPrograms, ProgramUse } from './kept-programs.js';
import { type LinkPorts, type ProgramLog, programLink, programOf } from './links.js';
import type { StdioMcpServer } from './mcp-config.js';
import { McpConnection } from './mcp-connection.js';
import { serverFailure } from './explain-failure.js';
import type { StdioCommand } from './stdio-process.js';

/** An MCP server in a child process that lives for a context. */
export class ContextProgram implements KeepableProgram {
  readonly connection: McpConnection;
  /** Processes that run: one, or two while a turn replaces a lost one. */
  private running = 0;

  /**
   * @param current the log of the turn that uses it
   * @param onEnd called when no process is left
   */
  constructor(
    command: StdioCommand,
    { connectTimeout, timeout }: Pick<StdioMcpServer, 'connectTimeout' | 'timeout'>,
    private current: ProgramLog,
    onEnd: () => void,
  ) {
    const onProcessEnd = (): void => {
      this.running -= 1;
      if (this.running === 0) onEnd();
    };
    const link = programLink(command, () => this.current, onProcessEnd);
    const start = (): ReturnType<typeof link> => {
      this.running += 1;
      return link();
    };
    const onError = (error: Error): void => {
      const { log, redactor } = this.current;
      log.debug('MCP connection', { reason: serverFailure(error, redactor) });
    };
    this.connection = new McpConnection({ links: [start], connectTimeout, timeout, onError });
  }

  /** Writes to the log of the turn that uses the program from now on. */
  logTo(current: ProgramLog): void {
    this.current = current;
  }

  responds(): Promise<boolean> {
    return this.connection.responds();
  }

  async tidy(): Promise<boolean> {
    const isConnected = await this.connection.closeUnused();
    return isConnected && this.running > 0;
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}

/**
 * The program of the context of a turn. Its key has the values of its secrets, so a changed secret starts a new program.
 * @returns undefined: the turn needs a program of its own
 */
export async function programOfContext(
  { tenantId, agent, owner, task: { contextId } }: Turn,
  config: StdioMcpServer & { keep: number },
  ports: LinkPorts,
  programs: KeptPrograms<ContextProgram>,
): Promise<ProgramUse<ContextProgram> | undefined> {
  const command = await programOf(config, ports);
  const identity = [tenantId, agent.id, agent.version, agent.code, owner, contextId, config, command];
  const key = createHash('sha256').update(JSON.stringify(identity)).digest('hex');
  const current = { log: ports.log, redactor: ports.secrets.redactor };
  const wanted = { tenantId, key, keepMs: config.keep, server: config.name };
  const use = await programs.take(wanted, (onEnd) => new ContextProgram(command, config, current, onEnd));
  use?.program.logTo(current);
  return use;
}

/** Whether the program of a context may have had state that a new one has not. */
export async function hasEarlierTurns(turn: Turn): Promise<boolean> {
  if (turn.attempt > 1 || historyBefore(turn).length > 0) return true;
  return (await turn.earlierTasks(1)).length > 0;
}
