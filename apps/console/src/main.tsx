import '@mantine/core/styles/baseline.css';
import '@mantine/core/styles/default-css-variables.css';
import '@mantine/core/styles/global.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { setNonce } from 'get-nonce';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { signWith } from './api/client';
import { onRefusedToken, queryClient } from './api/query-client';
import { reloadWhenFilesAreGone } from './components/lazy-page';
import { router } from './router';
import { accessToken, endSession, isSignedIn, onSession } from './session/session';
import { cssVariables, theme } from './shell/theme';

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
// For the styles that dialogs put into the page while they are open.
setNonce(nonce);

reloadWhenFilesAreGone();
signWith(accessToken);
// The sign-in page shows why the session has ended.
onRefusedToken(endSession);
// A user who is signed out sees the sign-in page at once.
// A new session leads on by itself: to load the page of the provider's answer again would use up its code twice.
onSession(() => {
  if (!isSignedIn()) void router.invalidate();
});

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={cssVariables}
        defaultColorScheme="auto"
        getStyleNonce={() => nonce}
      >
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
