const written = document.querySelector<HTMLMetaElement>('meta[name="baton-command-line"]')?.content;

/** How a person calls the command line of this Baton: the server writes it into the page. Vite's own server runs in a clone. */
export const COMMAND_LINE = written?.startsWith('__') === false ? written : 'node bin/baton.cjs';
