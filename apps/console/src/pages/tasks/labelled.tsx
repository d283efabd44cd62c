import { Text } from '@mantine/core';
import styles from './task-trace.module.css';

/** A part of the input or the output of a call. */
export const Labelled = ({ name, children }: { name: string; children: React.ReactNode }) => (
  <div>
    <Text size="sm" fw={600}>
      {name}
    </Text>
    {children}
  </div>
);

export const Plain = ({ text }: { text: string }) => (
  <pre className={styles.plain} tabIndex={0}>
    {text}
  </pre>
);
