import { type Draft, MAX_CHARACTERS } from './draft';

/** A request that the user keeps under a name. */
export interface KeptDraft {
  name: string;
  draft: Draft;
}

/** The storage of a browser has about 5 MB for all of the console. */
const MAX_KEPT = 50;

/** The kept requests of a tenant in this browser. A draft has no token. */
export class KeptDrafts {
  private readonly key: string;

  constructor(tenant: string) {
    this.key = `baton.playground.${tenant}`;
  }

  read(): KeptDraft[] {
    try {
      const kept = JSON.parse(localStorage.getItem(this.key) ?? '[]') as unknown;
      return Array.isArray(kept) ? (kept as KeptDraft[]) : [];
    } catch {
      return [];
    }
  }

  /** The newest first. One of the same name is replaced. @throws Error if it is too large */
  keep(entry: KeptDraft): KeptDraft[] {
    const kept = [entry, ...this.without(entry.name)].slice(0, MAX_KEPT);
    return this.write(kept);
  }

  remove(name: string): KeptDraft[] {
    return this.write(this.without(name));
  }

  private without(name: string): KeptDraft[] {
    return this.read().filter((entry) => entry.name !== name);
  }

  private write(kept: KeptDraft[]): KeptDraft[] {
    const text = JSON.stringify(kept);
    if (text.length > MAX_CHARACTERS)
      throw new Error('The kept requests are too large. Remove one, or its files.');
    localStorage.setItem(this.key, text);
    return kept;
  }
}
