import react from '@vitejs/plugin-react';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

/** Where the API finds the console: see `apps/api/src/console/console-site.ts`. */
const OUT = fileURLToPath(new URL('../../dist/console', import.meta.url));

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** Puts the script of `first-reads.ts` into the page. It waits for no other, and none waits for it. */
const firstReads: Plugin = {
  name: 'first-reads',
  transformIndexHtml: {
    order: 'post',
    handler: (html, { bundle = {} }) => {
      const [file] = Object.values(bundle).filter(
        (each) => each.type === 'chunk' && each.name === 'first-reads',
      );
      const src = `/console/${file?.fileName ?? 'src/first-reads.ts'}`;
      return {
        html,
        tags: [{ tag: 'script', attrs: { type: 'module', async: true, src }, injectTo: 'head' }],
      };
    },
  },
};

/** Adds the styles of each component of the kit that is used, beside its code: those of all components are thrice as large. */
const kitStyles: Plugin = {
  name: 'kit-styles',
  transform: (code, id) => {
    const [, component] = /@mantine\/core\/esm\/.*\/(\w+)\.module\.mjs$/.exec(id) ?? [];
    return component === undefined ? null : `import '@mantine/core/styles/${component}.css';\n${code}`;
  },
};

/** Keeps the parser of YAML out of the pages that do not read any: the contract only declares, and `yaml` does not say that it does. */
const withoutSideEffects: Plugin = {
  name: 'without-side-effects',
  transform: (code, id) =>
    /\/(libs\/contract\/src|node_modules\/yaml)\//.test(id)
      ? { code, map: null, moduleSideEffects: false }
      : null,
};

export default defineConfig({
  root: HERE,
  // The server puts the path of PUBLIC_URL in front where the page names a file. Scripts name each other by relative paths.
  base: '/console/',
  experimental: {
    renderBuiltUrl: (_, { hostType }) => (hostType === 'html' ? undefined : { relative: true }),
  },
  plugins: [react(), firstReads, kitStyles, withoutSideEffects],
  resolve: {
    alias: { '@baton/contract': fileURLToPath(new URL('../../libs/contract/src/index.ts', import.meta.url)) },
  },
  // The server puts a nonce in its place in each answer.
  html: { cspNonce: '__CSP_NONCE__' },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    // The first ones with light-dark(). For older ones Vite would write it as two variables that are never set.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    // Nothing is inlined: the policy of the page allows no code in it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: [`${HERE}index.html`, `${HERE}src/first-reads.ts`] },
    chunkSizeWarningLimit: 1_500,
    reportCompressedSize: false,
  },
  // `npx vite apps/console` with a Baton beside it.
  server: { proxy: { '/v1': 'http://localhost:8080', '/agents': 'http://localhost:8080' } },
});
