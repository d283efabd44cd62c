import { Badge } from '@mantine/core';

/** A state as a word. The colour only helps. */
export const StateWord = ({ colour, word }: { colour: string; word: string }) => (
  <Badge variant="light" color={colour} c="var(--mantine-color-text)" tt="none">
    {word}
  </Badge>
);
