import { lazyRouteComponent, type RouteComponent } from '@tanstack/react-router';
import { SERVER_URL } from '../base';
import { PageLoadError } from './page-load-error';

/** When this tab was last loaded again because a file was missing, in ms since 1970. */
const KEY = 'baton.reloaded';
/** A file that is missing again so soon after is missing for another reason. */
const PAUSE_MS = 60_000;

/** A page whose code is loaded when the user opens it. The router would load the page again also where the server is away. */
export function lazyPage<T extends Record<string, unknown>>(
  load: () => Promise<T>,
  name: keyof T & string,
): RouteComponent {
  const page = () =>
    load().catch((error: unknown) => {
      throw new PageLoadError(error);
    });
  return lazyRouteComponent(page, name) as RouteComponent;
}

/** Loads the page again, if the server answers: without it the browser would show its own error page. */
export async function reloadPage(): Promise<void> {
  const answer = await fetch(`${SERVER_URL}/console/settings.json`, { cache: 'no-store' }).catch(
    () => undefined,
  );
  if (answer?.ok !== true) return;
  sessionStorage.setItem(KEY, String(Date.now()));
  window.location.reload();
}

/**
 * Loads the page again, once, when a file of it is missing: after an upgrade of the server its files have other names. If that does
 * not help, the page shows that a file could not be loaded.
 */
export function reloadWhenFilesAreGone(): void {
  window.addEventListener('vite:preloadError', () => {
    if (Date.now() - Number(sessionStorage.getItem(KEY) ?? 0) > PAUSE_MS) void reloadPage();
  });
}
