import type { ErrorComponentProps } from '@tanstack/react-router';
import { ErrorView } from './error-view';
import { reloadPage } from './lazy-page';
import { PageLoadError } from './page-load-error';

/** In place of a page that could not be shown. A browser keeps a file that it could not load: only another load of the page helps. */
export const PageError = ({ error, reset }: ErrorComponentProps) => (
  <ErrorView error={error} retry={error instanceof PageLoadError ? () => void reloadPage() : reset} />
);
