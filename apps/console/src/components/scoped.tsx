import { Code } from '@mantine/core';
import type { ReactNode } from 'react';
import { type CallerScope, useCaller } from '../session/caller';
import { EmptyState } from './empty-state';
import { Page } from './page';
import { COMMAND_LINE } from '../command-line';

/** A page for callers with one of these scopes. Others see which one they lack. */
export function ScopedPage({
  title,
  scopes,
  actions,
  children,
}: {
  title: string;
  scopes: readonly CallerScope[];
  actions?: ReactNode;
  children: ReactNode;
}) {
  const { can, tenant } = useCaller();
  const isAllowed = can(...scopes);
  return (
    <Page title={title} actions={isAllowed ? actions : undefined}>
      {isAllowed ? (
        children
      ) : (
        <EmptyState title="Your token may not see this page">
          It needs the scope {scopes.join(' or ')}. An administrator of your tenant makes a token that has it
          on the page Tokens, the operator with{' '}
          <Code>
            {COMMAND_LINE} tokens create --tenant {tenant} --scopes {scopes[0]}
          </Code>
        </EmptyState>
      )}
    </Page>
  );
}
