import { stateIn } from '../dialects.js';
import type { Artifacts, Frame, State } from '../observations.js';

/** What a reader who puts events together has. */
export interface Folded {
  state: State | undefined;
  artifacts: Artifacts;
}

/** Puts events together by the rules of A2A: a chunk without `append` replaces what there was of its artifact. */
export function fold(frames: readonly Frame[]): Folded {
  const folded: Folded = { state: undefined, artifacts: {} };
  for (const { said } of frames) {
    folded.state = stateIn(said) ?? folded.state;
    if (said.kind === 'task') folded.artifacts = structuredClone(said.artifacts);
    if (said.kind !== 'artifact') continue;
    const before = said.append ? (folded.artifacts[said.artifactId] ?? []) : [];
    folded.artifacts[said.artifactId] = [...before, ...said.texts];
  }
  return folded;
}

export const sameArtifacts = (a: Artifacts, b: Artifacts): boolean => canonical(a) === canonical(b);

const canonical = (artifacts: Artifacts): string =>
  JSON.stringify(Object.entries(artifacts).sort(([a], [b]) => (a < b ? -1 : 1)));
