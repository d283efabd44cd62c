import { endsTurn, type Part, textPart, wellFormed } from '@baton/a2a';
import type { AgentOutput, ArtifactOutput } from '@baton/agents';

/** Replaces a lone surrogate. */
const REPLACEMENT = '\uFFFD';

/**
 * The output of one attempt as well-formed Unicode. Agents and models may split a character over two chunks of an artifact: the
 * first half (a high surrogate) is held until the next chunk of that artifact. Any other half becomes U+FFFD.
 */
export class WellFormedOutput {
  /** The first halves at the ends of artifacts, by artifact id. */
  private readonly halves = new Map<string, string>();

  /** The outputs for the log in place of this one, in order. */
  convert(output: AgentOutput): AgentOutput[] {
    switch (output.$case) {
      case 'artifactUpdate':
        return [wellFormed(this.chunk(output))];
      case 'statusUpdate': {
        const { status } = output.value;
        if (!status) return [wellFormed(output)];
        const message = status.message && { ...status.message, parts: wholeParts(status.message.parts) };
        const value = { ...output.value, status: { ...status, message } };
        return [...(endsTurn(status.state) ? this.rest() : []), wellFormed({ ...output, value })];
      }
      case 'message': {
        const value = { ...output.value, parts: wholeParts(output.value.parts) };
        return [...this.rest(), wellFormed({ ...output, value })];
      }
      case 'task': {
        const artifacts = output.value.artifacts.map((artifact) => ({
          ...artifact,
          parts: wholeParts(artifact.parts),
        }));
        return [...this.rest(), wellFormed({ ...output, value: { ...output.value, artifacts } })];
      }
    }
  }

  /** Nothing more is appended: a chunk for each half that is still held. */
  rest(): ArtifactOutput[] {
    const ids = [...this.halves.keys()];
    this.halves.clear();
    return ids.map((artifactId) => {
      const parts = [textPart(REPLACEMENT)];
      const artifact = { artifactId, parts, name: '', description: '', metadata: undefined, extensions: [] };
      const ids = { taskId: '', contextId: '' };
      return {
        $case: 'artifactUpdate',
        value: { ...ids, artifact, append: true, lastChunk: false, metadata: undefined },
      };
    });
  }

  private chunk(output: ArtifactOutput): ArtifactOutput {
    const { artifact, append, lastChunk } = output.value;
    if (!artifact) return output;
    const id = artifact.artifactId.toWellFormed();
    const before = append ? (this.halves.get(id) ?? '') : '';
    this.halves.delete(id);
    if (lastChunk) {
      const parts = wholeParts(artifact.parts, before);
      return { ...output, value: { ...output.value, artifact: { ...artifact, parts } } };
    }
    const { parts, half } = joinHalves(artifact.parts, before);
    if (half !== '') this.halves.set(id, half);
    return { ...output, value: { ...output.value, artifact: { ...artifact, parts } } };
  }
}

/** Parts that nothing follows. */
function wholeParts(all: readonly Part[], before = ''): Part[] {
  const { parts, half } = joinHalves(all, before);
  return half === '' ? parts : withText(parts, REPLACEMENT);
}

/** Texts that follow each other are read as one text, which begins with `before` and may continue after `half`. */
function joinHalves(all: readonly Part[], before: string): { parts: Part[]; half: string } {
  let parts: Part[] = [];
  let half = before;
  for (const part of all) {
    const { content } = part;
    if (content?.$case === 'text') {
      const text = half + content.value;
      const last = text.slice(-1);
      half = last >= '\uD800' && last <= '\uDBFF' ? last : '';
      const value = half === '' ? text : text.slice(0, -1);
      parts.push(value === content.value ? part : { ...part, content: { ...content, value } });
    } else {
      if (half !== '') parts = withText(parts, REPLACEMENT);
      half = '';
      parts.push(part);
    }
  }
  return { parts, half };
}

/** The parts with more text at their end. */
function withText(parts: readonly Part[], text: string): Part[] {
  const last = parts.at(-1);
  if (last?.content?.$case !== 'text') return [...parts, textPart(text)];
  const content = { ...last.content, value: last.content.value + text };
  return [...parts.slice(0, -1), { ...last, content }];
}
