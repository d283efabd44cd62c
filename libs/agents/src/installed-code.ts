import type { Agent } from '@baton/a2a';
import { Injectable } from '@nestjs/common';

/** Hashes of the code of the installed agents of this worker (`agentCode`). */
@Injectable()
export class InstalledCode {
  private readonly hashes = new Map<string, string>();

  /** Notes the code that the processes of an agent load from now on. */
  set({ slug, code }: { slug: string; code: string }): void {
    this.hashes.set(slug, code);
  }

  /** The code with which an agent runs here. Undefined: it has none, or it is unknown. */
  codeOf({ slug, code, origin }: Pick<Agent, 'slug' | 'code' | 'origin'>): string | undefined {
    return origin === 'installed' ? (code ?? this.hashes.get(slug)) : undefined;
  }
}
