const written = document.querySelector<HTMLMetaElement>('meta[name="baton-base"]')?.content;

/**
 * Path of PUBLIC_URL, without a slash at its end: the server writes it into the page. Empty where Baton is at the root of its
 * host, and with Vite's own server. `first-reads.ts`, which imports nothing, reads it by itself.
 */
export const BASE = written?.startsWith('/') ? written : '';

/** URL of the server, without a slash at its end. */
export const SERVER_URL = window.location.origin + BASE;
