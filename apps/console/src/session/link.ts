import { ApiError, errorOf } from '../api/api-error';
import { BASE } from '../base';

/**
 * The code of the link that `npm start` prints, if this page was opened with it. It leaves the address bar and the history at
 * once: this module runs before the router reads the address.
 */
const code = takeCode();

function takeCode(): string | undefined {
  const { pathname, hash } = window.location;
  if (pathname !== `${BASE}/console/link` || hash === '') return undefined;
  window.history.replaceState(null, '', pathname);
  return hash.slice(1);
}

/** The token for the code of the link, which works once. @throws ApiError if the link no longer works */
export async function redeemLink(): Promise<string> {
  const response = await fetch(`${BASE}/console/sign-in-link`, {
    method: 'POST',
    headers: { authorization: `Bearer ${code ?? ''}` },
  }).catch(() => {
    throw ApiError.unreachable();
  });
  if (!response.ok) throw await errorOf(response);
  return ((await response.json()) as { token: string }).token;
}
