import { Text } from '@mantine/core';
import styles from './task-trace.module.css';

/** A part of what a call was given or has said. */
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
