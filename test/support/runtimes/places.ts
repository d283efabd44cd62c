import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { type TestMcpServer, startMcpServer } from '../mcp-server/mcp-server.js';
import { textTool } from '../mcp-server/script.js';
import { ModelProvider, type Reply } from '../model-provider/model-provider.js';
import { RemoteAgent } from '../remote-agent/remote-agent.js';
import { modelReply } from './rows.js';

/** Where the agents of all runtimes get what they say: a model, a tool, an agent elsewhere, and a file that holds one. */
export class Places {
  /** How fast a model sends an answer of many events. */
  pace: Reply['pace'];

  private constructor(
    readonly provider: ModelProvider,
    readonly mcp: TestMcpServer,
    readonly remote: RemoteAgent,
    /** An executor stops while it is there. */
    private readonly holdFile: string,
  ) {}

  /** @param holdFile that of the workers */
  static async start(holdFile: string): Promise<Places> {
    const [provider, mcp, remote] = await Promise.all([
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('order', 'done')] }),
      RemoteAgent.start({ version: '1.0' }),
    ]);
    const places = new Places(provider, mcp, remote, holdFile);
    provider.answer((request) => modelReply(request, existsSync(holdFile), places.pace));
    return places;
  }

  /** From now on each stream stops after one chunk. */
  hold(): void {
    writeFileSync(this.holdFile, '');
    this.remote.executor.holdAfter(1);
  }

  release(): void {
    rmSync(this.holdFile, { force: true });
    this.remote.executor.release();
  }

  async stop(): Promise<void> {
    await Promise.all([this.provider.stop(), this.mcp.stop(), this.remote.kill()]);
  }
}
