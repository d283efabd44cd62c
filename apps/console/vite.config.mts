import react from '@vitejs/plugin-react';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/** Where the API finds the console: see `apps/api/src/console/console-site.ts`. */
const OUT = fileURLToPath(new URL('../../dist/console', import.meta.url));

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  plugins: [react()],
  // The server puts a nonce in its place in each answer.
  html: { cspNonce: '__CSP_NONCE__' },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    // Nothing is inlined: the policy of the page allows no code in it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_500,
    reportCompressedSize: false,
  },
  // `npx vite apps/console` with a Baton beside it.
  server: { proxy: { '/v1': 'http://localhost:8080', '/agents': 'http://localhost:8080' } },
});
