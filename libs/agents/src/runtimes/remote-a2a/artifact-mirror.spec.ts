import type { Artifact, Part, TaskArtifactUpdateEvent } from '@baton/a2a';
import { type AgentOutput, jsonPart, plainTextPart } from '../../agent-runtime.js';
import { firstTurn } from '../../../../../test/support/agents/turns.js';
import { ArtifactMirror, missingParts } from './artifact-mirror.js';

const texts = (...values: string[]): Part[] => values.map(plainTextPart);
const artifact = (...parts: Part[]): Artifact => ({
  artifactId: 'a',
  name: 'a',
  description: '',
  metadata: undefined,
  extensions: [],
  parts,
});
const chunk = (append: boolean, ...parts: Part[]): TaskArtifactUpdateEvent => ({
  taskId: 'r',
  contextId: 'r',
  append,
  lastChunk: false,
  metadata: undefined,
  artifact: artifact(...parts),
});

/** Each output as [append, ...its texts]. */
const brief = (outputs: AgentOutput[]) =>
  outputs.map(({ value }) => {
    const { append, artifact } = value as TaskArtifactUpdateEvent;
    return [append, ...(artifact?.parts ?? []).map(({ content }) => content?.value)];
  });

function mirror(attempt = 1, already: Artifact[] = []): ArtifactMirror {
  const turn = firstTurn('hi', { attempt });
  return new ArtifactMirror({ ...turn, task: { ...turn.task, artifacts: already } });
}

describe('the mirror of a remote task’s artifacts', () => {
  it('adds what a snapshot has and the stream had not', () => {
    const mirrored = mirror();
    mirrored.chunk(chunk(false, ...texts('1', '2')));
    expect(brief(mirrored.snapshot([artifact(...texts('1', '2', '3'))], false))).toEqual([[true, '3']]);
    expect(mirrored.snapshot([artifact(...texts('1', '2', '3'))], false)).toEqual([]);
    expect(brief(mirrored.chunk(chunk(true, ...texts('4'))))).toEqual([[true, '4']]);
  });

  it('replaces what turns out to be different, be it that the stream had too much', () => {
    const mirrored = mirror();
    mirrored.chunk(chunk(false, ...texts('1', '2', '2')));
    expect(brief(mirrored.snapshot([artifact(...texts('1', '2'))], true))).toEqual([[false, '1', '2']]);
  });

  it('adds to what an earlier turn has said', () => {
    const mirrored = mirror(1, [artifact(...texts('1'))]);
    expect(mirrored.snapshot([artifact(...texts('1'))], false)).toEqual([]);
    expect(brief(mirrored.chunk(chunk(true, ...texts('2'))))).toEqual([[true, '2']]);
  });

  it('replaces what a dead attempt has said, as soon as there is more of it', () => {
    const whole = mirror(2, [artifact(...texts('1'))]);
    expect(brief(whole.snapshot([artifact(...texts('1', '2'))], false))).toEqual([[false, '1', '2']]);
    expect(brief(whole.chunk(chunk(true, ...texts('3'))))).toEqual([[true, '3']]);
    const later = mirror(2, [artifact(...texts('1'))]);
    expect(later.snapshot([artifact(...texts('1'))], false)).toEqual([]);
    expect(brief(later.chunk(chunk(true, ...texts('2'))))).toEqual([[false, '1', '2']]);
    expect(brief(later.chunk(chunk(true, ...texts('3'))))).toEqual([[true, '3']]);
  });

  it('sends a large snapshot in pieces, the last of which is marked', () => {
    const large = Array.from({ length: 5 }, () => plainTextPart('x'.repeat(30_000)));
    const outputs = mirror().snapshot([artifact(...large)], true);
    const updates = outputs.map(({ value }) => value as TaskArtifactUpdateEvent);
    expect(updates.map(({ append, lastChunk }) => [append, lastChunk])).toEqual([
      [false, false],
      [true, false],
      [true, true],
    ]);
    expect(updates.flatMap(({ artifact }) => artifact?.parts)).toEqual(large);
  });
});

describe('what is missing', () => {
  it.each([
    ['parts', texts('a'), texts('a', 'b'), texts('b')],
    ['nothing', texts('a', 'b'), texts('a', 'b'), []],
    ['text of an agent that joins its chunks', texts('a', 'b'), texts('abc'), texts('c')],
    ['nothing of joined text', texts('a', 'b'), texts('ab'), []],
    ['everything of another beginning', texts('a'), texts('b', 'c'), undefined],
    ['everything when data has changed', [jsonPart({ n: 1 })], [jsonPart({ n: 2 })], undefined],
    ['nothing of an artifact without parts, which is stored with an empty text', texts(''), [], []],
    ['nothing beside an empty text', [jsonPart({ n: 1 }), plainTextPart('')], [jsonPart({ n: 1 })], []],
    ['data', [jsonPart({ n: 1 })], [jsonPart({ n: 1 }), jsonPart({ n: 2 })], [jsonPart({ n: 2 })]],
  ])('is %s', (_, known, whole, missing) => {
    expect(missingParts(known, whole)).toEqual(missing);
  });

  it('does not depend on what versions leave out', () => {
    const bare = { ...plainTextPart('a'), mediaType: '', metadata: {} };
    expect(missingParts([bare], texts('a'))).toEqual([]);
  });
});
