import { QueryCache, QueryClient, MutationCache } from '@tanstack/react-query';
import { ApiError } from './api-error';

/** Of a request that fails for a moment. After them the page shows the error and a button. */
const RETRIES = 2;

let onRefused: (reason: string) => void = () => undefined;

/** Calls the listener with the reason when a token is no longer valid. */
export function onRefusedToken(listener: (reason: string) => void): void {
  onRefused = listener;
}

function onError(error: Error): void {
  if (error instanceof ApiError && error.status === 401) onRefused(error.message);
}

/** What the pages have read. Reads are tried again if that may help; writes never are. */
export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => error instanceof ApiError && error.isTransient && failures < RETRIES,
      retryDelay: (failures, error) =>
        error instanceof ApiError && error.retryAfter !== undefined
          ? error.retryAfter * 1_000
          : 500 * 2 ** failures,
    },
    mutations: { retry: false },
  },
});
