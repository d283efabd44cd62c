import { Code, Stack, Text } from '@mantine/core';
import type { AnswerMessage } from '@baton/contract';
import { usePrincipalName } from '../../session/principal-names';
import styles from './tasks.module.css';

/** What a person has answered: decisions on tool calls, and the fields of forms. */
export function GivenAnswers({ answers, by }: Pick<AnswerMessage, 'answers' | 'by'>) {
  const nameOf = usePrincipalName();
  // Answers have no names, and their order is fixed.
  return answers.map(({ verb, tool, reason, fields }, i) => (
    <Stack key={i} gap={4} my={4}>
      <Text size="sm" title={by}>
        {verb} {tool !== undefined && <Code>{tool}</Code>}
        {by !== undefined && ` by ${nameOf(by)}`}
        {reason !== undefined && `: ${reason}`}
      </Text>
      {fields.length > 0 && (
        <dl className={styles.fields}>
          {fields.map(({ name, value }, k) => (
            <div key={k}>
              <dt>{name}</dt>
              <dd dir="auto">{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </Stack>
  ));
}
