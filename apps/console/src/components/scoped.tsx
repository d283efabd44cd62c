import type { ReactNode } from 'react';
import { type CallerScope, useCaller } from '../session/caller';
import { EmptyState } from './empty-state';
import { Page } from './page';

/** A page for callers with one of these scopes. Others are told which one they lack. */
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
  const isAllowed = useCaller().can(...scopes);
  return (
    <Page title={title} actions={isAllowed ? actions : undefined}>
      {isAllowed ? (
        children
      ) : (
        <EmptyState title="Your token may not see this page">
          It needs the scope {scopes.join(' or ')}. Ask an administrator of your tenant for a token that has
          it.
        </EmptyState>
      )}
    </Page>
  );
}
