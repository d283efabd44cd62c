import fc from 'fast-check';
import { ArtifactFold, type EventPayload } from './artifact-fold.js';
import { type Artifact, TaskState } from './model.js';
import {
  artifactEvent,
  sampleArtifact,
  sampleTask,
  statusEvent,
  textPart,
} from '../../../test/support/a2a/samples.js';

function foldAll(events: EventPayload[], artifacts: Artifact[] = []): Artifact[] {
  const fold = new ArtifactFold(artifacts);
  for (const event of events) fold.apply(event);
  return fold.artifacts();
}

/** The fold as the specification words it: copy everything, every time. */
function foldNaively(events: EventPayload[]): Artifact[] {
  return events.reduce<Artifact[]>((artifacts, event) => {
    if (event.$case !== 'artifactUpdate' || !event.value.artifact) return artifacts;
    const { artifact, append } = event.value;
    const existing = artifacts.find(({ artifactId }) => artifactId === artifact.artifactId);
    if (!existing) return [...artifacts, artifact];
    const next = append
      ? {
          ...existing,
          name: artifact.name || existing.name,
          description: artifact.description || existing.description,
          parts: [...existing.parts, ...artifact.parts],
          metadata: artifact.metadata ? { ...existing.metadata, ...artifact.metadata } : existing.metadata,
        }
      : artifact;
    return artifacts.map((one) => (one === existing ? next : one));
  }, []);
}

const chunk = (text: string, members: Partial<Artifact> = {}) =>
  sampleArtifact({ parts: [textPart(text)], ...members });
const texts = (artifact: Artifact | undefined) =>
  artifact?.parts.map(({ content }) => content?.value as unknown);

describe('folding artifacts', () => {
  it('appends chunks as parts of their own', () => {
    const [artifact] = foldAll([
      artifactEvent(chunk('a')),
      artifactEvent(chunk('b'), true),
      artifactEvent(chunk('c'), true),
    ]);
    expect(texts(artifact)).toEqual(['a', 'b', 'c']);
  });

  it('lets a chunk that does not append replace what a dead attempt had sent', () => {
    const [artifact] = foldAll([
      artifactEvent(chunk('a')),
      artifactEvent(chunk('b'), true),
      artifactEvent(chunk('again')),
    ]);
    expect(texts(artifact)).toEqual(['again']);
  });

  it('creates an artifact that is appended to before it is known', () => {
    expect(texts(foldAll([artifactEvent(chunk('late'), true)])[0])).toEqual(['late']);
  });

  it('goes on from artifacts folded earlier without touching them', () => {
    const before = [chunk('a')];
    expect(texts(foldAll([artifactEvent(chunk('b'), true)], before)[0])).toEqual(['a', 'b']);
    expect(texts(before[0])).toEqual(['a']);
  });

  it('leaves the event as it was', () => {
    const first = artifactEvent(chunk('a'));
    foldAll([first, artifactEvent(chunk('b', { name: 'n', metadata: { x: 1 } }), true)]);
    expect(first).toEqual(artifactEvent(chunk('a')));
  });

  it('lays the artifacts of a task over those there are', () => {
    const task = sampleTask({
      artifacts: [chunk('new', { artifactId: 'a-1' }), chunk('other', { artifactId: 'a-2' })],
    });
    const folded = foldAll([
      artifactEvent(chunk('old')),
      { $case: 'task', value: task },
      statusEvent(TaskState.TASK_STATE_WORKING),
    ]);
    expect(folded.map(texts)).toEqual([['new'], ['other']]);
  });

  it('equals the plain fold for any log', () => {
    const event = fc
      .record({
        artifactId: fc.constantFrom('a', 'b', '__proto__'),
        name: fc.constantFrom('', 'n', 'm'),
        description: fc.constantFrom('', 'd'),
        metadata: fc.constantFrom(undefined, { x: 1 }, { y: 2 }),
        parts: fc.array(fc.string().map(textPart), { maxLength: 3 }),
        append: fc.boolean(),
      })
      .map(({ append, ...members }) => artifactEvent(sampleArtifact(members), append));
    fc.assert(
      fc.property(fc.array(event), (events) => {
        expect(foldAll(events)).toEqual(foldNaively(events));
      }),
    );
  });

  it('copies nothing of what there is when tens of thousands of chunks are appended', () => {
    const fold = new ArtifactFold();
    fold.apply(artifactEvent(chunk('0')));
    const [artifact] = fold.artifacts();
    const { parts } = artifact!;
    for (let i = 1; i < 50_000; i += 1) fold.apply(artifactEvent(chunk(String(i)), true));
    expect(fold.artifacts()).toHaveLength(1);
    expect(fold.artifacts()[0]).toBe(artifact);
    expect(artifact!.parts).toBe(parts);
    expect(parts).toHaveLength(50_000);
  });
});
