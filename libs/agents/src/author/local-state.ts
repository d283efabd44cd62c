import type {
  ContextState,
  DurableSteps,
  StateOutcome,
  StateValue,
} from '../runtimes/executor/child/steps.js';

/** The state of a context in a unit test. */
export class LocalState {
  private readonly known: Map<string, StateValue>;

  /** @param values by key: each has version 1 */
  constructor(values: Readonly<Record<string, unknown>>) {
    this.known = new Map(Object.entries(values).map(([key, value]) => [key, { value, version: 1 }]));
  }

  /** The values by key. */
  get values(): Record<string, unknown> {
    return Object.fromEntries([...this.known].map(([key, { value }]) => [key, value]));
  }

  /** For the code of an agent. */
  api(step: DurableSteps['step']): ContextState {
    return {
      get: (key) => step(`get ${key}`, () => this.get(key)),
      set: (key, value, { version } = {}) => step(`set ${key}`, () => this.set(key, value, version)),
    };
  }

  private get(key: string): StateValue {
    return this.known.get(key) ?? { value: undefined, version: 0 };
  }

  private set(key: string, value: unknown, expected: number | undefined): StateOutcome {
    const current = this.get(key);
    if (expected !== undefined && expected !== current.version) return { isSet: false, ...current };
    const version = current.version + 1;
    this.known.set(key, { value, version });
    return { isSet: true, version };
  }
}
