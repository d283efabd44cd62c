import { Card, Text } from '@mantine/core';
import { type Artifact, kindOf } from '../../a2a/artifacts';
import { type Part, PartView } from '../../components/part-view';
import { Section } from '../../components/section';

/** What the task has made. */
export function Artifacts({ artifacts }: { artifacts: readonly Artifact[] }) {
  const made = artifacts.filter((each) => kindOf(each) === undefined);
  if (made.length === 0) return <Text size="sm">The task has no artifacts.</Text>;
  return (
    <Section title="Artifacts">
      {made.map(({ artifactId, name, parts = [] }) => (
        <Card key={artifactId} withBorder padding="sm">
          <Text size="sm" fw={600}>
            {name ?? artifactId}
          </Text>
          <Parts parts={parts} />
        </Card>
      ))}
    </Section>
  );
}

/** The parts of a message or an artifact. */
export const Parts = ({ parts }: { parts: readonly Part[] }) =>
  // The parts of a message have no names, and their order is fixed.
  parts.map((part, index) => <PartView key={index} part={part} />);
